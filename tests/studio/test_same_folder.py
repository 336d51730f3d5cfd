"""Page, command line and Python code give the same folder, byte for byte, for random choices.

The short form runs commands in this process; PEGSYNTH_LONG=1 draws more, and every choice goes
through the page and processes of their own as well.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from filling_in import Filler
from running import in_process

from command import pegs
from pegsynth.errors import PegsynthError
from pegsynth.schema import Schema
from pegsynth.schema.toml import load, save
from pegsynth.studio import spelled_commands
from pegsynth.studio.codebook_changes import apply
from pegsynth.studio.project import Project

LONG = bool(os.environ.get("PEGSYNTH_LONG"))
SEEDS = range(40 if LONG else 5)
METHODS = ("auto", "pegs", "pegs-rs", "pegs-once", "marginal", "contingency")


def write_table(folder: Path, draw: random.Random) -> str:
    """Write a small table in one of the forms that users have; return its name."""
    rows = 120
    table = pl.DataFrame(
        {
            "sex": draw.choices(["f", "m"], k=rows),
            "ward": draw.choices(["a", "b", "c"], k=rows),
            "age": [draw.randrange(20, 80) for _ in range(rows)],
        }
    )
    kind = draw.choice(["csv", "semicolons", "parquet", "sqlite"])
    if kind == "csv":
        table.write_csv(folder / "stays.csv")
    elif kind == "semicolons":
        table.write_csv(folder / "stays.csv", separator=";")
    elif kind == "parquet":
        table.write_parquet(folder / "stays.parquet")
        return "stays.parquet"
    else:
        with closing(sqlite3.connect(folder / "stays.db")) as base, base:
            base.execute("create table stays (sex text, ward text, age integer)")
            base.executemany("insert into stays values (?, ?, ?)", table.rows())
        return f"sqlite:///{folder / 'stays.db'}"
    return "stays.csv"


def choices(draw: random.Random) -> dict[str, str]:
    method = draw.choice(METHODS)
    weights = draw.choice([{}, {"replicates": "2"}]) if method == "pegs-once" else {}
    return {
        "epsilon": draw.choice(["0.5", "1", "4"]),
        "rows": str(draw.randrange(10, 40)),
        "method": method,
        "seed": str(draw.randrange(1000)),
        **draw.choice([{}, {"delta": "1e-9"}]),
        **draw.choice([{}, {"rows_in": "120"}]),
        **draw.choice([{}, {"datasets": "2"}]),
        **draw.choice([weights, weights, {"replicates": "2"}]),
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def run_code(code: str) -> str:
    """Run Python code here; return what it refused, or nothing."""
    try:
        exec(code, {})
    except PegsynthError as error:
        return str(error)
    return ""


def refused(outcome) -> str:
    if outcome.code == 0:
        return ""
    assert outcome.code == 2, outcome
    return re.split(r"^pegs: ", outcome.err, flags=re.MULTILINE)[-1].strip()


def told_alike(by_command: str, by_code: str) -> bool:
    """Messages name options as flags, or as arguments; numbers and all else are the same."""
    words = [re.sub(r"[-_` ]+", " ", text).strip() for text in (by_command, by_code)]
    return words[0] == words[1]


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_choices_give_the_same_folder(tmp_path, monkeypatch, seed):
    draw = random.Random(f"studio-{seed}")
    monkeypatch.chdir(tmp_path)
    data = write_table(tmp_path, draw)
    table = "stays" if data.startswith("sqlite") else ""
    project = Project(tmp_path, data=data, table=table, may_see=True, choices=choices(draw))
    project.save()

    drafted = spelled_commands.draft(project, private=draw.random() < 0.3 and bool(table))
    assert refused(pegs(*drafted.words)) == ""
    by_command = (tmp_path / "schema.toml").read_bytes()
    assert run_code(drafted.code) == ""
    assert (tmp_path / "schema.toml").read_bytes() == by_command

    if draw.random() < 0.5:
        role = {"what": ["bulk"], "chosen": ["ward"], "role": ["sensitive"]}
        apply(tmp_path / "schema.toml", role)
    apply(tmp_path / "schema.toml", {"what": ["review"], "reviewer": ["R"], "declared": ["yes"]})
    released = spelled_commands.release(project, "release-1")
    told = refused(pegs(*released.words))
    made = {} if told else contents(tmp_path / "release-1")
    shutil.rmtree(tmp_path / "release-1", ignore_errors=True)
    by_code = run_code(released.code)
    assert told_alike(told, by_code), (told, by_code)
    assert ({} if told else contents(tmp_path / "release-1")) == made
    if LONG and made:
        shutil.rmtree(tmp_path / "release-1")
        through_the_page(tmp_path, made)


def through_the_page(folder: Path, made: dict[str, bytes]) -> None:
    with in_process(folder) as client:
        filler = Filler(folder, client)
        filler.send("/release")
        assert filler.wait().status == 0
    assert contents(folder / "release-1") == made


@pytest.mark.slow(seconds=10)
def test_page_command_and_code_give_the_same_folder(tmp_path, monkeypatch):
    """Once through the page, which runs the command in a process of its own."""
    monkeypatch.chdir(tmp_path)
    data = write_table(tmp_path, random.Random("page"))
    chosen = {"epsilon": "3", "delta": "1e-9", "rows": "30", "datasets": "2", "seed": "9"}
    project = Project(tmp_path, data=data, may_see=True, choices=chosen).save()
    Schema.draft(data).save(tmp_path / "schema.toml")
    save(replace(load(tmp_path / "schema.toml"), reviewed=True), tmp_path / "schema.toml")
    spelled = spelled_commands.release(project, "release-1")
    with in_process(tmp_path) as client:
        filler = Filler(tmp_path, client)
        filler.send("/release")
        job = filler.wait()
    assert job.status == 0, job.log
    assert job.command == spelled.command
    made = contents(tmp_path / "release-1")
    assert {"public/synthetic-1.csv", "internal/report.html"} <= set(made)
    shutil.rmtree(tmp_path / "release-1")
    assert refused(pegs(*shlex.split(spelled.command)[1:])) == ""
    assert contents(tmp_path / "release-1") == made
    shutil.rmtree(tmp_path / "release-1")
    assert run_code(spelled.code) == ""
    assert contents(tmp_path / "release-1") == made
