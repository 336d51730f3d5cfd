"""Code for the declared analyses: run as it stands in Python and R, and both say the same."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from command import done
from pegsynth.publishing.declared_code import declared_models
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis
from system import require

FEATURES = (
    Feature("my x", kind="numeric", edges=(0.0, 25.0, 50.0, 100.0), dtype="int64", label="A sum"),
    # svyglm calls objects of its own g and data.
    Feature("g", categories=("a", "b", "c"), missing=("",)),
    Feature("data", kind="numeric", edges=(0.0, 40.0, 60.0, 100.0), dtype="float64"),
    Feature("s", categories=("yes", "no"), label='Whether it "was"'),
)
ANALYSES = (
    Analysis("data ~ `my x` + g + C(s)"),
    Analysis("I(data > 50) ~ `my x` + I(`my x`^2)", family="binomial"),
    Analysis("s ~ data*g", family="binomial"),
)
SCHEMA = Schema(FEATURES, reviewed=True, analyses=ANALYSES)
CODE = {kind: re.compile(rf"```{kind}\n(.*?)```", re.DOTALL) for kind in ("python", "r", "stata")}
LINE = re.compile(r"^(.+?) +(-?[\d.e+-]+) +(-?[\d.e+-]+) +(-?[\d.e+-]+)$")


def test_terms_become_columns_and_formulas():
    first, second, third = declared_models(ANALYSES, SCHEMA)
    assert first.in_r == "`[data]` ~ `[my x]` + `[g]` + `[C(s)]`"
    assert first.in_stata(1) == "c.x1_1 i.x1_2 i.x1_3"
    assert (second.family, second.command) == ("quasibinomial", "logit")
    assert [part.in_r for part in second.columns] == ["as.numeric({x} > 50)", "{x}", "{x}^2"]
    assert third.in_r == "`[s]` ~ `[data]` + `[g]` + `[data]`:`[g]`"
    assert third.in_stata(3) == "c.x3_1 i.x3_2 c.x3_1#i.x3_2"
    assert third.response.categories == ("yes", "no")


def test_what_r_and_stata_cannot_be_told_is_left_out():
    spline = Analysis("data ~ rcs(`my x`, 20, 40, 60)")
    several = Analysis("g ~ `my x`", family="multinomial")
    (model,) = declared_models((spline, several), SCHEMA)
    assert (model.family, model.command) == ("", "mlogit")


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    folder = tmp_path_factory.mktemp("declared")
    draws, rows = np.random.default_rng(1), 2000
    table = {
        "my x": draws.integers(0, 100, rows),
        "g": [None if i % 50 == 0 else v for i, v in enumerate(draws.choice(list("abc"), rows))],
        "data": draws.normal(50, 10, rows).round(1).clip(1, 99),
        "s": draws.choice(["yes", "no"], rows),
    }
    pl.DataFrame(table).write_csv(folder / "table.csv")
    SCHEMA.save(folder / "schema.toml")
    told = ("--schema", folder / "schema.toml", "--epsilon", 5, "--delta", 1e-6, "--rows", 400)
    more = ("--replicates", 7, "--public-only", "-o", folder / "run")
    done("release", folder / "table.csv", *told, *more)
    return folder / "run" / "public"


def ran(public, kind, *command):
    code = "\n".join(CODE[kind].findall((public / "HOW-TO-ANALYSE.md").read_text()))
    outcome = subprocess.run(
        [*command, code], cwd=public, capture_output=True, text=True, check=False, timeout=300
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.slow(seconds=12)
def test_r_and_python_give_the_same_estimates_and_intervals(public):
    require("r-base-core")
    require("r-cran-survey")
    in_r = [
        [float(x) for x in match.groups()[1:]]
        for line in ran(public, "r", "Rscript", "-e").splitlines()
        if (match := LINE.match(line)) and ("[" in line or "Intercept" in line)
    ]
    in_python = []
    for line in ran(public, "python", sys.executable, "-c").splitlines():
        cells = re.split(r"  +", line)
        if cells[-1] == "replicate-weights" and cells[-2].startswith(("supported", "not sup")):
            in_python.append([float(cells[place]) for place in (1, 4, 5)])
    assert len(in_r) == len(in_python) == 6 + 3 + 8
    for ours, theirs in zip(in_python, in_r, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5)


@pytest.mark.slow(seconds=6)
def test_the_page_says_what_columns_are_and_how_stata_is_told(public):
    text = (public / "HOW-TO-ANALYSE.md").read_text()
    assert "- `my x`: A sum" in text
    assert text.index("## Declared analyses") < text.index("## If a column is a survey weight")
    stata = CODE["stata"].findall(text)[-1]
    assert "svy: regress y1 c.x1_1 i.x1_2 i.x1_3\n" in stata
    assert 'replace y3 = s != "yes"' in stata
    readme = (public / "README.md").read_text()
    assert "| my x | A sum | numeric | 3 |" in readme
    assert "**In short.** A program made these tables" in readme
