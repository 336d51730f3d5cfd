"""The judge of the fuzzing campaign: every kind of fault, made on purpose, is caught."""

import os
import subprocess
import sys
import time

import polars as pl
import pytest

from checks.fuzz import oracle
from checks.fuzz.cases import Case, run_case, source_of
from checks.fuzz.forked import Readers, ended
from checks.fuzz.office import duckdb_bytes, duckdb_mended
from checks.fuzz.oracle import Outcome, faults
from checks.fuzz.run import Record, Worker, campaign, summary
from checks.fuzz.tables import SECRET, SECRET_NUMBER, pickled
from checks.fuzz.targets import TARGETS
from pegsynth.errors import DataError


@pytest.fixture
def root(tmp_path, monkeypatch):
    for name in ("good", "in", "out"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(root, call):
    return run_case(Case({}, calls=(call,)), root, []).faults


def refuse(message):
    def call():
        raise DataError(message)

    return call


def test_a_refusal_and_a_success_are_fine(root):
    assert judged(root, lambda: None) == ()
    assert judged(root, refuse("in/x.csv: the file is empty; give another")) == ()


def test_another_exception_is_a_fault(root):
    (found,) = judged(root, lambda: {}["x"])
    assert found.startswith("traceback: KeyError")


@pytest.mark.parametrize("secret", [SECRET, SECRET_NUMBER])
def test_a_value_in_a_message_is_a_fault(root, secret):
    assert any("secret" in each for each in judged(root, refuse(f"value {secret} is wrong")))
    (_, *found) = judged(root, lambda: os.write(2, f"panic at {secret}".encode()))
    assert found == ["secret: a value of the data is on standard error"]


def test_a_write_elsewhere_is_a_fault(root):
    assert judged(root, lambda: (root / "out" / "x").write_text("x")) == ()
    assert "write outside of the output folder" in judged(
        root, lambda: (root / "good" / "x").write_text("x")
    )


def test_code_that_runs_is_a_fault(root):
    import pickle

    assert "execution: the canary is there" in judged(root, lambda: pickle.loads(pickled()))


def test_memory_is_measured(root, monkeypatch):
    monkeypatch.setattr("checks.fuzz.cases.MOST_MEMORY", 1 << 26)
    assert judged(root, lambda: bytes(1 << 20)) == ()
    assert "memory: more than 2 GiB" in judged(root, lambda: b"x" * (1 << 27))


def test_a_long_case_is_a_fault(root, monkeypatch):
    monkeypatch.setattr("checks.fuzz.cases.MOST_SECONDS", 0.05)

    def busy():
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    assert "hang: more than 10 s" in judged(root, busy)


@pytest.mark.parametrize(
    ("readers", "fault"),
    [
        (Readers(0.1, 1 << 28, 1, 0), None),
        (Readers(11.0, 0, 0, 0), "hang: more than 10 s"),
        (Readers(0.0, 3 << 30, 0, 0), "memory: more than 2 GiB"),
        (Readers(0.0, 0, 0, 1), "hang: a reader went on when the command had ended"),
    ],
)
def test_reading_processes_are_judged(root, readers, fault):
    found = run_case(Case({}, calls=(lambda: None,)), root, [], lambda: readers)
    assert found.faults == (() if fault is None else (fault,))
    assert found.crashed == readers.crashed


@pytest.mark.parametrize(
    ("code", "crashed", "stuck"),
    [("", 0, 0), ("import os; os.abort()", 1, 0), ("import time; time.sleep(60)", 0, 1)],
)
def test_reading_processes_are_waited_for(monkeypatch, code, crashed, stuck):
    monkeypatch.setattr("checks.fuzz.forked.LEAVING_SECONDS", 1.0 if stuck else 60.0)
    process = subprocess.Popen([sys.executable, "-c", code])
    found = ended({process.pid})
    assert (found.crashed, found.stuck) == (crashed, stuck)
    assert found.memory > 1 << 20
    # Its end was taken from it, and it shall not complain.
    process.returncode = 0


def test_a_refusal_that_leaves_a_file_is_a_fault(root):
    (root / "out" / "old").write_text("x")
    before = oracle.files_below(root / "out")
    refusal, success = Outcome(2, "", "pegs: no\n"), Outcome(0, "", "")
    assert oracle.written_faults(root / "out", before, refusal) == []
    (root / "out" / "half").write_text("x")
    assert oracle.written_faults(root / "out", before, success) == []
    (found,) = oracle.written_faults(root / "out", before, refusal)
    assert found.startswith("a refusal that changes files")
    (root / "out" / "half").unlink()
    (root / "out" / "old").write_text("other")
    assert len(oracle.written_faults(root / "out", before, refusal)) == 1


def test_a_schema_that_cannot_be_read_again_is_a_fault(root):
    path = root / "out" / "s.toml"
    path.write_text('[[features]]\nname = "a"\ncategories = ["x"]\n')
    assert oracle.written_faults(root / "out", {}, Outcome(0, "", "")) == []
    path.write_text('# \x7f\n[[features]]\nname = "a"\ncategories = ["x"]\n')
    (found,) = oracle.written_faults(root / "out", {}, Outcome(0, "", ""))
    assert "cannot be read again" in found


def test_formulas_are_seen_and_numbers_are_not_formulas(root):
    (root / "out" / "o.csv").write_text('a,b\n-1,+2.5e3\n"\'=1+1",x\n')
    assert oracle.output_faults(root / "out") == []
    (root / "out" / "o.csv").write_text('a,b\nx,"=1+1"\n')
    assert oracle.output_faults(root / "out") == ["formula in o.csv"]


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Outcome(1, "", ""), "exit status 1"),
        (Outcome(2, "half", "pegs: no\n"), "a refusal after output"),
        (Outcome(2, "", "pegs: no\npegs: no\n"), "not one message"),
        (Outcome(2, "", "Error\n"), "not one message"),
        (Outcome(2, "", "pegs: not enough memory\n"), "memory: ran out"),
        (Outcome(2, "", f"pegs: {'x' * 9999}\n"), "a message that is too long"),
        (Outcome(2, "", "pegs: \x1b[31m\n"), "control character 0x1b is printed"),
        (Outcome(3, "", "pegs: internal error (KeyError at a.py:1)\n"), "internal error: KeyError"),
        (Outcome(0, "", "", "Traceback\nKeyError: 'x'"), "traceback: KeyError in ?"),
    ],
)
def test_outcomes(outcome, fault):
    assert any(found.startswith(fault) for found in faults(("fit",), outcome))


@pytest.mark.parametrize(("target", "fault"), [("dies", "crash"), ("hangs", "hang")])
def test_a_process_that_dies_or_hangs_is_noted_and_the_next_case_runs(
    tmp_path, monkeypatch, target, fault
):
    """The worker is replaced by a few lines that die or hang at case 1."""
    script = tmp_path / "fake.py"
    script.write_text(
        "import json, os, sys, time\n"
        "out = os.fdopen(int(sys.argv[1]), 'w', buffering=1)\n"
        "say = lambda **what: out.write(json.dumps(what) + '\\n')\n"
        "say(ready=1)\n"
        "for line in sys.stdin:\n"
        "    target, first, end, _ = line.split()\n"
        "    for number in range(int(first), int(end)):\n"
        "        say(start=number)\n"
        "        if number == 1:\n"
        "            os.abort() if target == 'dies' else time.sleep(60)\n"
        "        say(done=number, code=0, seconds=0.0)\n"
        "    say(end=int(end))\n"
    )
    monkeypatch.setattr("checks.fuzz.run.MOST_SECONDS", 1.0)
    monkeypatch.setattr("checks.fuzz.run._GRACE_SECONDS", 0.0)
    monkeypatch.setattr("checks.fuzz.run.WORKER", (str(script),))
    monkeypatch.setattr("checks.fuzz.run._LEAVING_SECONDS", 1.0)
    record, worker = Record(), Worker(tmp_path)
    worker.run(target, 0, 4, record)
    worker.close()
    assert record.cases == 4
    (found,) = record.findings
    assert found["case"] == 1
    assert found["fault"].startswith(fault)
    assert f"{target}:1" in summary(record)


def test_checksums_of_a_changed_database_are_those_that_duckdb_writes():
    content = duckdb_bytes(pl.DataFrame({"a": [1, 2]}))
    assert duckdb_mended(content) == content
    assert duckdb_mended(bytes(8) + content[8:]) == content


def test_targets_may_have_equal_shares(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "checks.fuzz.run.Worker.run",
        lambda self, target, first, end, record: record.next.update({target: end}),
    )
    record, names = Record(), ("csv", "sas")
    campaign(record, tmp_path, cases=40, seconds=60, targets=names, equal=True, lot=5)
    assert record.next == {"csv": 20, "sas": 20}


def test_a_record_goes_on_where_it_stopped(tmp_path):
    record = Record(seed=5)
    record.note("csv", 0, {"code": 2, "seconds": 0.1})
    record.note("csv", 1, {"code": 0, "seconds": 0.2, "faults": ["x"], "detail": ""})
    record.save(tmp_path / "r.json")
    again = Record.load(tmp_path / "r.json", 5)
    assert again == record
    assert again.next == {"csv": 2}
    assert Record.load(tmp_path / "r.json", 6).cases == 0


@pytest.mark.parametrize(
    "target", ["csv", "parquet", "arrow", "sqlite", "dialect", "statistics", "sas", "duckdb"]
)
def test_a_case_is_fixed_by_its_number(root, target):
    (root / "good" / "data.csv").write_text("a,b\nx,y\n")
    (root / "good" / "data.duckdb").write_bytes(duckdb_bytes(pl.DataFrame({"a": [1]})))
    (root / "good" / "estimates.csv").write_text("term,estimate,variance\nx,1,1\n")
    make = TARGETS[target][1]
    first, again, other = (make(source_of(1, target, n), root) for n in (7, 7, 8))
    assert first.files == again.files
    assert first.commands == again.commands
    assert first.files != other.files
