"""Recodings on the command line: files beside the schema, whole models, one message (R31)."""

from __future__ import annotations

import json

import polars as pl
import pytest

from command import check_refused, done, pegs

SCHEMA = """\
reviewed = true

[[features]]
name = "age"
kind = "numeric"
dtype = "int64"
edges = [0, 20, 40, 60, 110]
top = 90
round = 10

[[features]]
name = "chapter"
categories = ["I", "J"]

[[features]]
name = "code"
categories = "codes.csv"
hierarchy = "tree.csv"
level = 0
parent = "chapter"

[[features]]
name = "text"
label_of = "code"
value_labels = "texts.csv"

[[features]]
name = "remark"
role = "drop"
"""
CODES = ("I20", "I21", "J10", "J11")


@pytest.fixture
def office(tmp_path):
    """A folder with a table, a schema and the files that it names."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "codes.csv").write_text("code\n" + "\n".join(CODES) + "\n")
    (tmp_path / "tree.csv").write_text("code,parent\nI20,I\nI21,I\nJ10,J\nJ11,J\n")
    (tmp_path / "texts.csv").write_text("code;text\n" + "\n".join(f"{c};({c})" for c in CODES))
    code = [CODES[i % 3] for i in range(300)]
    pl.DataFrame(
        {
            "age": [(i * 7) % 105 for i in range(300)],
            "chapter": [each[0] for each in code],
            "code": code,
            "text": ["SECRET-4711"] * 300,
            "remark": ["SECRET-4711"] * 300,
        }
    ).write_csv(tmp_path / "table.csv")
    return tmp_path


BUDGET = ("--epsilon", 5, "--delta", "1e-9", "--method", "pegs-once")


def test_a_model_is_whole_without_the_files(office):
    model = office / "m.pegs"
    done(*("fit", office / "table.csv", "--schema", office / "schema.toml", "-o", model, *BUDGET))
    for name in ("codes.csv", "tree.csv", "texts.csv", "schema.toml", "table.csv"):
        (office / name).unlink()
    done("sample", model, "--rows", 500, "-o", office / "out.csv")
    found = pl.read_csv(office / "out.csv")
    assert found.columns == ["age", "chapter", "code", "text"]
    assert all(age % 10 == 0 and age <= 90 for age in found["age"])
    assert (found["code"].str.slice(0, 1) == found["chapter"]).all()
    assert (found["text"] == "(" + found["code"] + ")").all()
    ledger = json.loads((office / "out.csv.privacy.json").read_text())
    said = {each["code"]: each for each in ledger["assumptions"]}
    assert said["public-recodings"]["parameters"]["features"] == ["age", "code"]
    assert "top 90" in said["public-recodings"]["text"]
    assert said["public-descriptions"]["parameters"] == {"features": ["text"]}
    assert "SECRET" not in (office / "out.csv").read_text()


def test_show_and_check_say_what_is_recoded(office):
    shown = done("schema", "show", office / "schema.toml").out
    assert "recoded age: top 90, round 10" in shown
    assert "detail code: drawn given chapter" in shown
    assert "describes 'code'" in shown
    assert "dropped" in shown
    checked = done("schema", "check", office / "schema.toml").out
    assert (
        "Recoded row by row before counting, by public rules: 'age' (top 90, round 10)" in checked
    )
    assert "written from codes by public texts: 'text'" in checked


def test_a_release_can_be_read_with_its_own_codebook(office):
    done(
        *("release", office / "table.csv", "--schema", office / "schema.toml", "--rows", 200),
        *("-o", office / "out", *BUDGET),
    )
    public = office / "out" / "public"
    assert "public and do not depend on the original table" in " ".join(
        (public / "PRIVACY.md").read_text().split()
    )
    done(
        *("evaluate", office / "table.csv", public / "synthetic-1.csv"),
        *("--schema", public / "schema.toml"),
    )


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("tree.csv", "code,parent\nI20,I\nI,I20\n", ("tree.csv", "'code'", "cycle")),
        ("tree.csv", "code,parent\nI20,I\nI21,\n", ("tree.csv", "line 3", "no parent")),
        ("tree.csv", "code,parent\nI20,I\n", ("'code'", "no category of its parent")),
        ("tree.csv", None, ("tree.csv", "there is no such file")),
        ("codes.csv", None, ("codes.csv", "there is no such file")),
        ("texts.csv", "code;text\nI20;x\n", ("'text'", "has no text")),
        ("schema.toml", SCHEMA.replace("top = 90", 'top = "p99"'), ("'age'", "public number")),
        ("schema.toml", SCHEMA.replace("top = 90", "top = inf"), ("'age'", "finite")),
        ("schema.toml", SCHEMA.replace("110]", "inf]"), ("'age'", "finite")),
        (
            "schema.toml",
            SCHEMA.replace("level = 0", 'level = 0\ngroups = { a = ["I20"], b = ["I20"] }'),
            ("'code'", "groups overlap"),
        ),
    ],
)
def test_bad_recodings_are_one_message_and_write_nothing(office, name, content, names):
    (office / name).unlink()
    if content is not None:
        (office / name).write_text(content)
    before = sorted(path.name for path in office.iterdir())
    ran = pegs(
        *("release", office / "table.csv", "--schema", office / "schema.toml", "--rows", 20),
        *("-o", office / "out", *BUDGET),
    )
    check_refused(ran, "schema.toml", *names)
    assert sorted(path.name for path in office.iterdir()) == before
