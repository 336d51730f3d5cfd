"""The R code of HOW-TO-ANALYSE.md gives what the Python code gives; Stata and SAS are shown."""

import re
import subprocess

import polars as pl

from pegsynth.inference.combining_rules import ReplicateDesign
from pegsynth.publishing.other_programs import other_programs
from pegsynth.schema import Feature, Schema
from system import require

BLOCK = re.compile(r"^```r\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BOOK = Schema(
    (
        Feature("pay", kind="numeric", edges=(0.0, 1.0, 2.0)),
        Feature("=it's", categories=("=007", "7")),
    )
)


def page(schema=BOOK, **options):
    told = {"datasets": 2, "table_format": "csv", "design": None, "beside": ""}
    told |= {"labels": False} | options
    return other_programs(schema, **told)


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
    assert "```r" not in page(
        datasets=1, design=ReplicateDesign(2, weight="w"), beside="weights.csv"
    )
    assert page(table_format="parquet") == ""
    assert page(Schema(BOOK.columns[:1])) == ""
    assert page(Schema(BOOK.columns[:1]), labels=True) != ""
