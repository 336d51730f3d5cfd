"""The R code of HOW-TO-ANALYSE.md gives what the Python code gives; Stata and SAS are shown."""

import re
import subprocess

import polars as pl

from pegsynth.privacy import Ledger, NotPrivate
from pegsynth.privacy.assumptions import stated
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.how_to_analyse import how_to_analyse
from pegsynth.schema import Feature, Schema
from system import require

BLOCK = re.compile(r"^```r\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BOOK = Schema(
    (
        Feature("pay", kind="numeric", edges=(0.0, 1.0, 2.0)),
        Feature("=it's", categories=("=007", "7")),
    )
)


def page(schema=BOOK, **told):
    """Return the section on other programs; empty where there is none."""
    known = {"rows": 10, "datasets": 2, "table_format": "csv", "decode": "values"}
    ledger = Ledger((NotPrivate.because("no-proof"),), told.pop("assumed", ()))
    text = how_to_analyse(Facts(schema, ledger, **known | told))
    return "".join(re.findall(r"^## In .*", text, re.MULTILINE | re.DOTALL))


def run_r(text, folder):
    require("r-base-core")
    (folder / "code.R").write_text("\n".join(BLOCK.findall(text)))
    done = subprocess.run(
        ["Rscript", "--vanilla", "code.R"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_share_of_several_tables_in_r(tmp_path):
    for number, count in ((1, 3), (2, 5)):
        cells = ["'=007"] * count + ["7"] * (10 - count)
        frame = pl.DataFrame({"pay": ["1.5"] * 10, "'=it's": cells})
        frame.write_csv(tmp_path / f"synthetic-{number}.csv")
    assert run_r(page(), tmp_path) == "share: 0.4000\n"


def test_programs_that_were_not_run_say_so_and_unfit_tables_have_no_section():
    text = page()
    assert "```stata\n* Not run." in text
    assert "```sas\n/* Not run. */" in text
    assert "was never run" in text
    assert "tables '''=it''s'n" in text
    weighted = page(
        datasets=1, assumed=(stated("public-options", {"replicates": 2, "weight_name": "w"}),)
    )
    assert 'import delimited using "synthetic-1-weights.csv"' in weighted
    assert "```r" not in weighted
    assert page(table_format="parquet") == ""
    assert page(Schema(BOOK.columns[:1])) == ""
    assert page(Schema(BOOK.columns[:1]), decode="labels") != ""
