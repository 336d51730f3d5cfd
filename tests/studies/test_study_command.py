"""``python -m studies.paper``: the folder, eight headings, going on, other tables, refusals."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest

from checks.fuzz.oracle import Outcome
from command import SECRET
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.schema import Feature, Schema
from studies.paper import run_study
from studies.paper.__main__ import main
from studies.paper.paper_study import CHECKPOINT
from studies.paper.size import TINY

TINY_RUN = """
from studies.paper import run_study
from studies.paper.size import TINY

if __name__ == "__main__":
    run_study({folder!r}, size=TINY, threads=2)
"""
FILES = {"FINDINGS.md", "report.html", "results.json", "checkpoint.jsonl", "tables", "figures"}


def study(*arguments: object) -> Outcome:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


def done(*arguments: object) -> Outcome:
    """Run the command in this process; it must succeed."""
    outcome = study(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def check_refused(outcome: Outcome, *names: object) -> None:
    """One readable message that names `names`, exit status 2, and no value of the data."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("study: ")
    assert "Traceback" not in outcome.err
    assert SECRET not in outcome.err
    for name in names:
        assert str(name) in outcome.err, outcome.err


@pytest.fixture(scope="module")
def tiny() -> object:
    """Make ``--quick`` a study of seconds."""
    with mock.patch("studies.paper.QUICK", TINY):
        yield


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("study") / "out"
    outcome = done("-o", path, "--quick", "--threads", 2)
    assert outcome.out.count("reproduced") == 8
    return path


def content(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on interruptions: all files but the checkpoint."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.name != CHECKPOINT}


def test_the_folder_has_everything(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    tables = {path.stem for path in (folder / "tables").iterdir()}
    assert {"table-1-methods", "table-2-variables", "table-3-sampling-steps"} <= tables
    assert {"findings", "estimates", *TINY.figures} <= tables
    for name in TINY.figures:
        assert (folder / "figures" / f"{name}.svg").read_text().startswith("<svg")
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_figures_are_drawn_whole(folder: Path) -> None:
    for path in (folder / "figures").glob("*.svg"):
        text = path.read_text()
        assert "undefined" not in text
        assert "NaN" not in text
    drawn = (folder / "figures" / "ru-marginals.svg").read_text()
    for words in ("PeGS.rs", "PMI", "sampling floor", "uniform seed rows", "original seed rows"):
        assert words in drawn


def test_findings_have_eight_headings_and_verdicts(folder: Path) -> None:
    text = (folder / "FINDINGS.md").read_text()
    headings = re.findall(r"^## (\d)\. \S", text, re.MULTILINE)
    assert headings == list("12345678")
    verdicts = re.findall(r"^\*\*Verdict: (.*)\.\*\*$", text, re.MULTILINE)
    assert len(verdicts) == 8
    assert set(verdicts) <= {"reproduced", "partly reproduced", "not reproduced"}
    saved = json.loads((folder / "results.json").read_text())
    assert [each["verdict"] for each in saved["findings"]] == verdicts
    assert f"N = {TINY.rows_in:,} rows" in text


def test_results_agree_with_their_tables(folder: Path) -> None:
    saved = json.loads((folder / "results.json").read_text())
    with (folder / "tables" / "ru-marginals.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    drawn = next(
        r
        for r in rows
        if r["series"] == "PeGS" and r["x"] == "0.1" and r["facet"].startswith("public")
    )
    found = next(
        e
        for e in saved["estimates"]
        if (e["arm"], e["level"], e["figure"]) == ("pegs, public", 0.1, "marginal_distance")
    )
    assert float(drawn["y"]) == pytest.approx(found["value"])
    assert float(drawn["low"]) == pytest.approx(found["low"])
    with (folder / "tables" / "table-1-methods.csv").open() as handle:
        methods = {row["method"]: row["measured"] for row in csv.DictReader(handle)}
    assert {"contingency", "marginal", "mi", "pmi", "pegs", "pegs-rs"} <= set(methods)
    assert "possible entries" in methods["pegs"]


def test_the_table_of_steps_draws_every_feature_once(folder: Path) -> None:
    with (folder / "tables" / "table-3-sampling-steps.csv").open() as handle:
        lines = list(csv.DictReader(handle))
    names = discharge_schema().names
    assert len(lines) == 1 + len(names) + 1
    for line, name in zip(lines[1:-1], names, strict=True):
        assert [n for n in names if line[n].startswith("*")] == [name]


def test_the_page_needs_nothing_from_elsewhere(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert len(text) < 3_000_000
    assert not re.search(r"""(src|href)=["']https?://""", text)
    assert "1. Every distance falls" in text


def test_a_finished_study_is_read_again(tiny, folder: Path) -> None:
    before, cells = content(folder), (folder / CHECKPOINT).read_bytes()
    with mock.patch("studies.paper.workshop.Workshop.draw", side_effect=AssertionError):
        done("-o", folder, "--quick", "--threads", 1)
    assert content(folder) == before
    assert (folder / CHECKPOINT).read_bytes() == cells


@pytest.mark.slow
def test_a_killed_study_goes_on_to_the_same_end(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", TINY_RUN.format(folder=str(target))])
    checkpoint = target / CHECKPOINT
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if checkpoint.exists() and checkpoint.read_bytes().count(b"\n") > 40:
            break
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    assert not (target / "FINDINGS.md").exists()
    held = checkpoint.read_bytes().count(b"\n")
    # As if the machine had stopped in the middle of a line.
    checkpoint.write_bytes(checkpoint.read_bytes()[:-7])
    run_study(target, size=TINY)
    assert checkpoint.read_bytes().count(b"\n") > held
    assert content(target) == content(folder)


def test_another_study_in_the_same_folder_is_refused(tiny, folder: Path) -> None:
    before = content(folder)
    check_refused(study("-o", folder, "--quick", "--seed", 2), "another run", "seed")
    assert content(folder) == before


def test_a_damaged_checkpoint_is_refused(tiny, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "damaged"
    target.mkdir()
    lines = (folder / CHECKPOINT).read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b"0.", b"1.", 1)
    (target / CHECKPOINT).write_bytes(b"".join(lines))
    check_refused(study("-o", target, "--quick"), "line 6", "remove the file")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "x.csv"), "--data and --schema go together"),
        (("--schema", "x.toml"), "--data and --schema go together"),
    ],
)
def test_data_and_schema_go_together(tmp_path: Path, arguments, words: str) -> None:
    check_refused(study("-o", tmp_path / "o", "--quick", *arguments), words)


def test_a_file_in_the_way_is_refused(tiny, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    check_refused(study("-o", path, "--quick"), path)
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_refused(tiny, tmp_path: Path) -> None:
    check_refused(study("-o", tmp_path / "no" / "such", "--quick"), "no")


@pytest.fixture(scope="module")
def own_table(tmp_path_factory) -> tuple[Path, Path]:
    """A table with none of the paper's features, some values missing, and its schema."""
    folder = tmp_path_factory.mktemp("own")
    generator = np.random.default_rng(3)
    town = generator.choice(["ash", "elm", "oak"], 240)
    plan = np.where(town == "ash", "a", generator.choice(["a", "b"], 240))
    pay = generator.integers(0, 100, 240)
    data, schema = folder / "own.csv", folder / "own.toml"
    frame = pl.DataFrame({"id": range(240), "town": town, "plan": plan, "pay": pay})
    frame.with_columns(pl.when(pl.col("pay") > 4).then("pay")).write_csv(data)
    Schema(
        (
            Feature("id", role="identifier"),
            Feature("town", categories=("ash", "elm", "oak"), role="quasi-identifier"),
            Feature("plan", categories=("a", "b"), role="other"),
            Feature(
                "pay",
                kind="numeric",
                edges=(0, 25, 50, 100),
                missing=("",),
                role="sensitive",
                dtype="int64",
            ),
        ),
        reviewed=True,
    ).save(schema)
    return data, schema


def test_a_study_of_ones_own_table_is_confidential(tiny, own_table, tmp_path: Path) -> None:
    data, schema = own_table
    target = tmp_path / "own"
    outcome = done("-o", target, "--quick", "--data", data, "--schema", schema)
    assert "CONFIDENTIAL" in outcome.err
    text = (target / "FINDINGS.md").read_text()
    assert re.findall(r"^## (\d)\. ", text, re.MULTILINE) == list("12345678")
    assert "CONFIDENTIAL" in text
    assert "CONFIDENTIAL" in (target / "report.html").read_text()
    assert "CONFIDENTIAL" in json.loads((target / "results.json").read_text())["notice"]
    for path in target.rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    left_out = text[text.index("## Left out") :]
    assert "regressions: the paper's models need" in left_out
    assert "attack by the most frequent category" in left_out
    assert "**Verdict: not assessed.**" in text
    assert "error of guessing pay" in text


def test_a_table_that_is_too_small_is_refused(tiny, own_table, tmp_path: Path) -> None:
    data, schema = own_table
    small = tmp_path / "small.csv"
    small.write_text("".join(data.read_text().splitlines(keepends=True)[:20]))
    outcome = study("-o", tmp_path / "o", "--quick", "--data", small, "--schema", schema)
    check_refused(outcome, "19 rows", "at least 50")


def test_an_unknown_value_is_refused_without_being_told(tiny, own_table, tmp_path: Path) -> None:
    data, schema = own_table
    bad = tmp_path / "bad.csv"
    bad.write_text(data.read_text().replace("oak", "SECRET-4711"))
    outcome = study("-o", tmp_path / "o", "--quick", "--data", bad, "--schema", schema)
    check_refused(outcome, "town")


@pytest.mark.slow
def test_discharge_columns_of_ones_own_get_the_papers_panels(tiny, tmp_path: Path) -> None:
    data, schema = tmp_path / "d.csv", tmp_path / "d.toml"
    discharge(500, 11).write_csv(data)
    discharge_schema().save(schema)
    target = tmp_path / "own"
    done("-o", target, "--quick", "--data", data, "--schema", schema)
    text = (target / "FINDINGS.md").read_text()
    assert "## Left out" not in text
    assert "stand in for a public pool" in text
