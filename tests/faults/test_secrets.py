"""No message, file or connection carries a value of the data away."""

import os
import stat
import subprocess
import sys
import warnings

import pytest

from checks.faults.places import make_place
from command import SECRET, pegs, pegs_process
from pegsynth.cli import working
from pegsynth.cli.main import TRACEBACK
from pegsynth.tables import atomic


class Panic(BaseException):
    """What a library in another language raises when it gives up."""


@pytest.fixture
def place(tmp_path):
    return make_place(tmp_path, rows=300, parts=2)


def fit(place):
    data, schema = place.folder / "data.csv", place.folder / "schema.toml"
    return pegs("fit", data, "--schema", schema, "-o", place.out / "m.pegs")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"could not parse `{SECRET}`"),
        KeyError(SECRET),
        RuntimeError(SECRET),
        AssertionError(SECRET),
        UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
        RecursionError(SECRET),
        Panic(SECRET),
        OSError(f"{SECRET} without a number"),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_nobody_foresaw(place, monkeypatch, error):
    def fail(*arguments, **options):
        raise error from ValueError(SECRET)

    monkeypatch.setattr(working, "fit_table", fail)
    outcome = fit(place)
    assert outcome.code == 3
    assert SECRET not in outcome.out + outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.err.count("\n") == 1
    assert f"internal error ({type(error).__name__} at cli/working.py:" in outcome.err
    assert os.listdir(place.out) == []


def test_a_whole_traceback_only_on_request(place, monkeypatch):
    def fail(*arguments, **options):
        raise ValueError(SECRET)

    monkeypatch.setattr(working, "fit_table", fail)
    monkeypatch.setenv(TRACEBACK, "1")
    outcome = fit(place)
    assert outcome.code == 3
    assert outcome.err.startswith("pegs: CONFIDENTIAL")
    assert SECRET in outcome.err


def test_a_warning_of_a_library_is_not_printed(place, monkeypatch):
    """Whether a number overflows depends on the data, and so would what is printed."""
    shipped = working.fit_table

    def warn(*arguments, **options):
        warnings.warn(f"overflow encountered: {SECRET}", RuntimeWarning, stacklevel=1)
        return shipped(*arguments, **options)

    monkeypatch.setattr(working, "fit_table", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        outcome = fit(place)
    assert outcome.code == 0
    assert "overflow" not in outcome.err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(24, "Too many open files"), "ulimit -n"),
        (FileNotFoundError(2, "No such file", "/some/input.csv"), "/some/input.csv: No such file"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (MemoryError(SECRET), "not enough memory"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_errors_of_the_surroundings(place, monkeypatch, error, words):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(working, "fit_table", fail)
    outcome = fit(place)
    assert outcome.code == 2
    assert words in outcome.err
    assert SECRET not in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("nameless", [True, False])
def test_temporary_files_are_the_owners_alone(tmp_path, monkeypatch, nameless):
    """Where files need a name while they are written, nobody else may read them either."""
    if not nameless:
        monkeypatch.setattr(os, "O_TMPFILE", 0)
    before = os.umask(0)
    try:
        with atomic.atomic_file(tmp_path / "out") as temporary:
            temporary.write_bytes(b"x")
            found = temporary.stat()
            assert stat.S_IMODE(found.st_mode) == 0o600
            assert found.st_dev == tmp_path.stat().st_dev
            assert len(list(tmp_path.iterdir())) == (0 if nameless else 1)
    finally:
        os.umask(before)
    assert (tmp_path / "out").read_bytes() == b"x"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_system_that_cannot_name_a_nameless_file(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(18, "Invalid cross-device link")

    (tmp_path / "out").write_text("old")
    monkeypatch.setattr(os, "link", refuse)
    atomic.atomic_text(tmp_path / "out", "new", mode=0o640)
    assert (tmp_path / "out").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_password_on_the_command_line_is_refused(tmp_path):
    address = f"postgresql://me:{SECRET}@localhost/base"
    for line in (
        ("schema", address, "--table", "t", "-o", tmp_path / "s.toml"),
        (
            "sample",
            tmp_path / "m.pegs",
            "--rows",
            1,
            "-o",
            address,
            "--output-table",
            "t",
            "--ledger",
            tmp_path / "l.json",
        ),
    ):
        outcome = pegs(*line)
        assert outcome.code == 2
        assert SECRET not in outcome.out + outcome.err


OFFLINE = """
import socket, sys
tried = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind",
                 "socket.gethostbyname", "urllib.Request", "http.client.connect"):
        tried.append(event)
        raise RuntimeError("the network was asked for")
sys.addaudithook(watch)
from checks.faults.driver import main
try:
    main()
except SystemExit as leaving:
    sys.exit(99 if tried else leaving.code)
sys.exit(99 if tried else 0)
"""


def offline(place, *arguments):
    """Run a command that must not ask Python for a connection; libraries have none to ask."""
    paths = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": paths, "TMPDIR": str(place.temporary)}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "")
    command = [sys.executable, "-c", OFFLINE, *map(str, arguments)]
    prefix = ["unshare", "--map-root-user", "--net"] if _can_unshare() else []
    run = subprocess.run(
        [*prefix, *command], env={**os.environ, **proxies, **own}, capture_output=True, check=False
    )
    assert run.returncode in (0, 1), run.stderr.decode()[-800:]
    return run


def _can_unshare():
    probe = ["unshare", "--map-root-user", "--net", "true"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.slow(seconds=25)
def test_the_whole_path_without_a_network(place):
    data, schema, out = place.folder / "data.csv", place.folder / "schema.toml", place.out
    where = ("--schema", schema)
    offline(place, "schema", data, "-o", out / "drafted.toml")
    offline(place, "fit", data, *where, "-o", out / "m.pegs")
    offline(place, "sample", out / "m.pegs", "--rows", 50, "--epsilon", 9, "-o", out / "t.csv")
    offline(place, "release", data, *where, "--epsilon", 5, "--rows", 50, "-o", out / "run")
    reports = ("--report", out / "r.html", "--json", out / "m.json", "--formula", "amount ~ C(a)")
    offline(place, "evaluate", data, out / "t.csv", *where, *reports)


@pytest.mark.slow
def test_the_demo_without_a_network(place):
    offline(place, "demo", "-o", place.out / "demo", "--rows", 200)


def test_the_watch_sees_a_connection(place):
    """The twin: a program that does ask."""
    program = OFFLINE.replace("from checks.faults.driver import main", _ASKING)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert run.returncode == 99


_ASKING = """
def main():
    import socket
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=0.1)
    except (RuntimeError, OSError):
        pass
"""


def test_no_module_of_ours_names_the_network():
    """Databases and clusters are reached over it by their own drivers; the studio listens."""
    import pathlib

    import pegsynth

    root = pathlib.Path(pegsynth.__file__).parent
    names = ("import socket", "urllib.request", "http.client", "import requests", "httpx")
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(name in path.read_text() for name in names)
    ]
    assert not [name for name in found if not name.startswith(("spark/", "studio/server"))], found


@pytest.mark.slow
def test_real_rows_stay_out_of_messages(place):
    """Tables that break at every place where a value could be quoted."""
    schema = place.folder / "schema.toml"
    bad = {
        "unlisted": f"a,b,c,amount,person\n{SECRET},p,0,1.5,{SECRET}\n",
        "not a number": f"a,b,c,amount,person\nx,p,0,{SECRET},{SECRET}\n",
        "ragged": f"a,b,c,amount,person\nx,p,0,1.5,{SECRET},{SECRET}\n",
        "quotes": f'a,b,c,amount,person\nx,p,0,1.5,"{SECRET}\n',
        "missing": f"a,b,c,amount,person\n,p,0,1.5,{SECRET}\n",
    }
    for name, text in bad.items():
        table = place.folder / f"{name}.csv"
        table.write_text(text)
        for flags in (
            ("fit", table, "--schema", schema, "-o", place.out / "m.pegs"),
            ("evaluate", table, table, "--schema", schema, "--json", place.out / "m.json"),
            (
                "release",
                table,
                "--schema",
                schema,
                "--epsilon",
                5,
                "--rows",
                9,
                "-o",
                place.out / "run",
            ),
        ):
            outcome = pegs(*flags)
            assert outcome.code == 2, (name, flags[0], outcome)
            assert SECRET not in outcome.out + outcome.err
    outcome = pegs_process("fit", table, "--schema", schema, "-o", place.out / "m.pegs")
    assert SECRET not in outcome.out + outcome.err
