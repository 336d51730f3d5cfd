"""A release in the dialect of its original: judged, loaded again, and analysed as its page says."""

import random
import re
import runpy
import subprocess
from dataclasses import replace

import polars as pl
import pytest

import pegsynth
from system import require


@pytest.fixture
def public(tmp_path, monkeypatch):
    """Return the public part of a release with weights: semicolons, decimal commas, no UTF-8."""
    draw = random.Random(1)
    lines = [
        f"{draw.choice('fm')};{draw.uniform(0, 9):.2f};{draw.choice(['né', 'dû'])}".replace(
            ".", ","
        )
        for _ in range(400)
    ]
    path = tmp_path / "prix.csv"
    path.write_bytes("\n".join(["sexe;prix;état", *lines, ""]).encode("cp1252"))
    schema = replace(pegsynth.Schema.draft(path), reviewed=True)
    assert (schema.dialect.separator, schema.dialect.decimal) == (";", ",")
    asked = {"epsilon": 2.0, "delta": 1e-9, "rows": 50, "replicates": 3, "method": "pegs-once"}
    # Weights that are not read leave nothing to judge, after the budget is spent.
    pegsynth.release(path, schema, folder=tmp_path / "release", **asked)
    monkeypatch.chdir(tmp_path / "release" / "public")
    return tmp_path / "release" / "public"


def test_it_is_loaded_as_it_is_written(public):
    (table,) = pegsynth.Release.load(public).weighted
    assert table.columns == [
        "sexe",
        "prix",
        "état",
        "pegs_weight",
        "pegs_weight_1",
        "pegs_weight_2",
        "pegs_weight_3",
    ]
    assert table.schema["prix"] == table.schema["pegs_weight"] == pl.Float64
    assert set(table["état"]) <= {"né", "dû"}
    assert table["pegs_weight"].sum() > 0


def test_the_code_of_its_page_runs(public, capsys):
    page = (public / "HOW-TO-ANALYSE.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (public / "how.py").write_text(code, encoding="utf-8")
    runpy.run_path(str(public / "how.py"))
    told = capsys.readouterr().out
    estimate = float(re.search(r"^share +([0-9.]+)", told, re.MULTILINE)[1])
    assert "état = " in told
    # Code for other programs would read the file as one column.
    assert "```stata" not in page
    require("r-cran-survey")
    (in_r,) = re.findall(r"```r\n(library\(survey\).*?)```", page, re.DOTALL)
    (public / "how.R").write_text(in_r, encoding="utf-8")
    done = subprocess.run(["Rscript", "how.R"], capture_output=True, text=True, check=True)
    found = float(re.search(r"^answer +([0-9.]+)", done.stdout, re.MULTILINE)[1])
    assert found == pytest.approx(estimate, abs=2e-4)
