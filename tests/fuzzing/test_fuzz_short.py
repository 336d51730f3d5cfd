"""A short campaign of hostile files; ``make fuzz`` runs the long one."""

from contextlib import chdir

import pytest
from hypothesis import HealthCheck, given, settings

from checks.fuzz import corpus
from checks.fuzz.cases import Case, run_case
from checks.fuzz.corpus import PER_ROW
from checks.fuzz.run import Record, campaign, summary
from checks.fuzz.strategies import schemas, tables
from checks.fuzz.targets import TARGETS

QUICK = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

_FLAGS = ("--rows", "3", *PER_ROW, "--threads", "1", "-o", "out/o.csv")
DRAFT_AND_DRAW = (
    ("schema", "in/t.csv", "-o", "out/s.toml"),
    ("review", "out/s.toml"),
    ("synthesize", "in/t.csv", "--schema", "out/s.toml", *_FLAGS),
)


@pytest.mark.slow
def test_no_hostile_file_does_harm(tmp_path):
    record = Record(seed=1)
    campaign(record, tmp_path / "work", cases=16 * len(TARGETS), seconds=25, lot=16)
    assert record.cases > 0
    assert not record.findings, summary(record)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    root = tmp_path_factory.mktemp("fuzz")
    (root / "good").mkdir()
    (root / "good" / "data.csv").write_text(corpus._table())
    # On a clean clone kernels compile here, and not in a case that is timed.
    with chdir(root):
        run_case(Case({"t.csv": corpus._table().encode()}, DRAFT_AND_DRAW), root, [])
    return root


@pytest.fixture
def root(good, monkeypatch):
    monkeypatch.chdir(good)
    return good


def check(case, root):
    found = run_case(case, root, [])
    assert found.faults == (), found


@QUICK
@given(text=schemas())
def test_codebooks_are_read_or_refused(root, text):
    flags = ("--rows", "3", *PER_ROW, "--threads", "1", "--accept-unreviewed-schema")
    paths = ("good/data.csv", "--schema", "in/s.toml", "-o", "out/o.csv")
    check(Case({"s.toml": text}, (("inspect", "in/s.toml"),)), root)
    check(Case({"s.toml": text}, (("synthesize", *paths, *flags),)), root)


@QUICK
@given(text=tables())
def test_csv_is_read_or_refused_and_survives(root, text):
    check(Case({"t.csv": text}, DRAFT_AND_DRAW), root)
