"""Signals and limits: the right exit status, one message, no traceback, nothing left."""

import os
import resource
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from checks.faults.places import make_place
from command import PEGS, bytes_written, check_refused, pegs_process, snapshot

STOPPED = b"pegs: stopped; every output is as it was, or whole\n"
DRAW = ("--method", "pegs", "--epsilon-per-row", "1", "--rows")


@pytest.fixture
def place(tmp_path):
    return make_place(tmp_path, rows=300, parts=2)


def line(place, command, output, *flags):
    data, schema = str(place.folder / "data.csv"), str(place.folder / "schema.toml")
    return [command, data, "--schema", schema, *map(str, flags), "-o", str(place.out / output)]


@contextmanager
def running(arguments, also=lambda: None, **options):
    """A command with signals as a terminal gives them, whoever runs the tests; ended at last."""

    def prepare():
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        also()

    command = [*PEGS, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=prepare, **options) as run:
        try:
            yield run
        finally:
            run.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_rows_are_drawn_and_another_while_it_tidies_up(place, number):
    before = snapshot(place.out)
    arguments = line(place, "synthesize", "t.csv", *DRAW, 10**10)
    with running(arguments) as run:
        while run.poll() is None and bytes_written(run) < 100_000:
            time.sleep(0.02)
        for _ in range(3):
            run.send_signal(number)
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 128 + number
    assert errors == STOPPED
    assert snapshot(place.out) == before


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_ctrl_c_while_the_program_starts(place, share):
    """Python itself answers until our code runs; then it is our message."""
    started = time.monotonic()
    subprocess.run([*PEGS, "fit", "--help"], capture_output=True, check=True)
    moment = share * (time.monotonic() - started)
    with running(line(place, "fit", "m.pegs")) as run:
        time.sleep(moment)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert run.returncode in (130, -signal.SIGINT, 1, 0)
    if run.returncode == 130:
        assert errors == STOPPED
    assert b"SECRET" not in errors
    assert set(os.listdir(place.out)) <= {"m.pegs"}


@pytest.mark.slow
def test_a_crash_leaves_no_core_file(place):
    """The memory of the process holds the table."""

    def cores_allowed():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != resource.RLIM_INFINITY:
        pytest.skip("no process here may write a core file")
    arguments = line(place, "synthesize", "t.csv", *DRAW, 10**10)
    with running(arguments, cores_allowed, cwd=place.folder) as run:
        while run.poll() is None and bytes_written(run) < 100_000:
            time.sleep(0.02)
        limits = Path(f"/proc/{run.pid}/limits").read_text()
        run.send_signal(signal.SIGQUIT)
        run.communicate(timeout=60)
    assert next(text for text in limits.splitlines() if "core" in text).split()[4] == "0"
    assert run.returncode == -signal.SIGQUIT
    assert not list(place.folder.rglob("core*"))
    assert os.listdir(place.out) == []


LIMITS = {
    "few open files": ("RLIMIT_NOFILE", 16, "ulimit -n"),
    "little address space": ("RLIMIT_AS", 1 << 30, "ulimit -v"),
    "small files": ("RLIMIT_FSIZE", 1000, "size allowed"),
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(
    ("command", "output", "flags"),
    [
        ("fit", "m.pegs", ()),
        ("synthesize", "t.csv", (*DRAW, "1000")),
        ("release", "run", ("--epsilon", "5", "--rows", "50")),
    ],
)
def test_a_limit_of_the_system(place, limit, command, output, flags):
    which, most, words = LIMITS[limit]

    def limited():
        resource.setrlimit(getattr(resource, which), (most, most))

    outcome = pegs_process(*line(place, command, output, *flags), preexec_fn=limited)
    check_refused(outcome, words)
    assert os.listdir(place.out) == []


@pytest.mark.slow
def test_a_disk_that_fills_up_when_a_budget_is_charged(place):
    """A small file system: the model's record, the ledger and the table go there."""
    shell = (
        'mount -t tmpfs -o size=256k tmpfs "$0" || exit 77; cp "$1" "$1.spent" "$0" || exit 78; '
        'head -c 200000 /dev/zero > "$0/filler"; before=$(cat "$0/m.pegs.spent"); shift; '
        '"$@"; code=$?; test "$(ls -A "$0" | wc -l)" = 3 || exit 9; '
        'echo "$before" | cmp -s - "$0/m.pegs.spent" || exit 10; exit $code'
    )
    flags = ("--method", "pegs", "--epsilon", "20", "--rows", "100000")
    made = pegs_process(*line(place, "fit", "m.pegs", *flags))
    assert made.code == 0, made
    small = place.folder / "small"
    small.mkdir()
    sample = ("sample", str(small / "m.pegs"), "--rows", "50000", "-o", str(small / "t.csv"))
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", shell, str(small)]
    run = subprocess.run(
        [*prefix, str(place.out / "m.pegs"), *PEGS, *sample], capture_output=True, check=False
    )
    if run.returncode == 77 or run.stderr.startswith(b"unshare:"):
        pytest.skip("no file system can be mounted here")
    assert run.returncode == 2, run
    assert run.stderr.count(b"\n") == 1
    assert b"the disk is full" in run.stderr
