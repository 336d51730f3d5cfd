"""The R code of HOW-TO-ANALYSE.md: run as it stands, and compared with ours."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import done
from pegsynth.publishing.how_to_analyse import quoted_in_r
from pegsynth.schema import Feature, Schema
from system import require

REPLICATES = 7
FIGURES = """
if (degf(design) != REPLICATES) stop("degrees of freedom")
cat(sprintf("%.12f", c(coef(share), SE(share), confint(share, df = REPLICATES))), "\\n")
""".replace("REPLICATES", str(REPLICATES))
GROUPS = ("b\"\\é'", "c", "-x")
TEXTS = Schema(
    (Feature("a b", categories=GROUPS), Feature("s", categories=("1", "2"))), reviewed=True
)
NUMBERS = Schema(
    (Feature("x", kind="numeric", edges=(0.0, 2.0, 5.0, 10.0), dtype="int64"),), reviewed=True
)


def test_texts_are_literals_of_plain_letters():
    assert quoted_in_r('a"\\\n') == r'"a\"\\\u000a"'
    assert quoted_in_r("é\U0001f600") == r'"\u00e9\U0001f600"'


@pytest.mark.slow(seconds=8)
@pytest.mark.parametrize("schema", [TEXTS, NUMBERS], ids=["category", "number"])
@pytest.mark.parametrize("decode", ["values", "labels"])
def test_r_gives_our_estimate_standard_error_and_interval(tmp_path, schema, decode):
    require("r-base-core")
    require("r-cran-survey")
    words = np.random.default_rng(1)
    table = {
        "a b": words.choice(GROUPS, 300),
        "s": words.choice(["1", "2"], 300),
        "x": words.integers(0, 10, 300),
    }
    schema.save(tmp_path / "schema.toml")
    pl.DataFrame(table).select(schema.names).write_csv(tmp_path / "data.csv")
    asked = ("--method", "pegs-once", "--epsilon", 5, "--rows", 200, "--decode", decode)
    done("release", tmp_path / "data.csv", "--schema", tmp_path / "schema.toml", *asked,
         "--replicates", REPLICATES, "--public-only", "-o", tmp_path / "run")  # fmt: skip
    public = tmp_path / "run" / "public"
    (code,) = re.findall(r"```r\n(.*?)```", (public / "HOW-TO-ANALYSE.md").read_text(), re.DOTALL)
    ran = subprocess.run(
        ["Rscript", "-e", code + FIGURES],
        cwd=public, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = [float(figure) for figure in ran.stdout.splitlines()[-1].split()]

    frame = pl.read_csv(public / "synthetic-1.csv", infer_schema=False)
    release = pegsynth.Release.load(tmp_path / "run")
    if schema is TEXTS:
        answer = (frame["a b"] == GROUPS[0]).to_numpy()
    elif decode == "values":
        answer = frame["x"].cast(pl.Float64).to_numpy() >= 5.0
    else:
        answer = (frame["x"] == frame["x"].unique().sort()[0]).to_numpy()
    ours = release.replicated(
        lambda _, weights: {"share": np.average(answer, weights=weights)}
    ).combined["share"]
    wanted = [ours.estimate, ours.variance**0.5, *ours.interval(0.95)]
    assert found == pytest.approx(wanted, abs=1e-9)
