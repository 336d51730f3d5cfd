"""HOW-TO-ANALYSE.md names the rule that fits, and its code runs as it stands."""

import contextlib
import io
import re
import sys
from fractions import Fraction

import polars as pl
import pytest

from command import done
from pegsynth.privacy import Ledger, NoisyCounts, NotPrivate, Unspent
from pegsynth.privacy.assumptions import stated
from pegsynth.privacy.draw_events import PegsDraws, UrnDraws
from pegsynth.publishing.about import NOTHING
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.how_to_analyse import how_to_analyse
from pegsynth.publishing.policy import NO_POLICY
from pegsynth.publishing.privacy_pages import privacy_page
from pegsynth.schema import Feature, Schema

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALPHA = {"alpha_numerator": 1, "alpha_denominator": 1, "features": 3}

SEX = Feature("=sex", categories=("=f", "m"), missing=("",))
ZIP = Feature("zip", categories=("007", "7"))
CHARGE = Feature("charge", kind="numeric", edges=(0.0, 10.0, 20.0, 50.0), missing=("",))
BOOK = Schema((CHARGE, SEX, ZIP), reviewed=True)
TABLE = pl.DataFrame(
    {
        "charge": [None if i % 7 == 0 else i % 50 for i in range(300)],
        "=sex": ["=f", "m", None] * 100,
        "zip": ["007", "7", "7", "007", "7"] * 60,
    },
    schema={"charge": pl.Float64, "=sex": pl.String, "zip": pl.String},
)


def run(folder, monkeypatch):
    """Run all code of the page in order, in its folder; return page and output."""
    page = (folder / "HOW-TO-ANALYSE.md").read_text()
    monkeypatch.chdir(folder)
    out = io.StringIO()
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(out):
        for block in BLOCK.findall(page):
            exec(compile(block, "HOW-TO-ANALYSE.md", "exec"), namespace)
    return page, out.getvalue(), namespace


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Give a maker of release folders on a small table, by the command itself."""
    home = tmp_path_factory.mktemp("made")
    TABLE.write_parquet(home / "data.parquet")
    BOOK.save(home / "schema.toml")

    def make(*flags, budget=("--epsilon-per-row", 5)):
        folder = tmp_path_factory.mktemp("release") / "out"
        done(
            *("release", home / "data.parquet", "--schema", home / "schema.toml", "--public-only"),
            *("--rows", 60, *budget, "--threads", 1, "-o", folder, *flags),
        )
        return folder / "public"

    return make


def page_of(ledger, schema=BOOK, **told):
    """Return the page of a release that was never made."""
    known = {"rows": 60, "datasets": 1, "table_format": "csv"}
    return how_to_analyse(Facts(schema, ledger, **known | told))


def test_released_blocks_say_that_rows_are_not_independent():
    """Low-variance sampling, the rule that fits, and noise that all tables share (R11, R16)."""
    noise = NoisyCounts.laplace(2.0, cells=1, purpose="block")
    ledger = Ledger((noise, Unspent.of(Fraction(1, 8), route="pure")))
    page = page_of(ledger, datasets=3)
    several = ("understates", "`fully`", "No combining rule covers either")
    for text in ("not independent draws", "**plug-in**", *several):
        assert text in page
    assert "Virtual rows" not in page
    one = page_of(ledger)
    assert "not independent draws" in one
    assert "One table has no standard errors" in one
    assert not any(text in one for text in several)
    draws = Ledger((PegsDraws(**ALPHA, rows=60, datasets=3),))
    assert "not independent draws" not in page_of(draws, datasets=3)


def test_examples_are_about_features_that_vary():
    ledger = Ledger((PegsDraws(**ALPHA, rows=60, datasets=1),))
    one = Feature("one", categories=("only",))
    flat = Feature("flat", kind="numeric", edges=(0.0, 10.0), missing=("",))

    def code(*features):
        book = Schema(features, reviewed=True)
        return "\n".join(BLOCK.findall(page_of(ledger, book)))

    found = code(one, flat, ZIP, CHARGE)
    assert "The share of rows with zip = 007." in found
    assert '"charge >= 20"' in found
    assert "only" not in found
    assert "flat" not in found
    alone = code(one)
    assert "The share of rows with one = only." in alone
    assert "A regression" not in alone


def test_three_tables_with_a_stated_row_count(release, monkeypatch):
    exact = ("--method", "cart", "--no-guarantee")
    folder = release("--datasets", 3, "--rows-in", 300, budget=exact)
    page, out, names = run(folder, monkeypatch)
    assert "**plug-in**" in page
    assert "T = (n/N) v + b/K" in page
    assert "stated by the publisher to be 300" in page
    assert re.search(r"share: 0\.\d{4}, 95 % interval -?0\.\d{4} to \d\.\d{4}", out)
    assert re.search(r"^zip = 007 .* plug-in$", out, re.MULTILINE)
    assert "no rule covers" in out
    # The code finds what the tables hold, apostrophes against formulas included.
    tables = [pl.read_csv(folder / f"synthetic-{i}.csv", infer_schema=False) for i in (1, 2, 3)]
    shares = [(table["'=sex"] == "'=f").sum() / 60 for table in tables]
    assert names["result"].estimate == pytest.approx(sum(shares) / 3)
    assert names["result"].rule == "plug-in"
    assert 0 < names["result"].estimate < 1


def test_tables_under_virtual_rows_have_no_intervals(release, monkeypatch):
    page, out, names = run(release("--datasets", 3), monkeypatch)
    assert "These tables have no intervals" in page
    assert "rows_in" not in page
    assert re.search(r"share: 0\.\d{4} \(standard errors cannot be given\)", out)
    assert "'intercept'" in out
    assert "result" not in names


def test_tables_without_a_row_count(tmp_path, monkeypatch):
    made_by_hand(tmp_path, Ledger((NotPrivate.because("no-proof"),)))
    page, out, _ = run(tmp_path, monkeypatch)
    assert "rows_in = None" in page
    assert "write it after `rows_in =`" in page
    assert re.search(r"share: 0\.\d{4} \(standard errors need rows_in\)", out)
    assert "'intercept'" in out
    assert "interval" not in out
    # Nor does the page speak of intervals as if the reader had them.
    assert "The intervals" not in page
    assert "once N is known" in page


def test_one_table(release, monkeypatch):
    page, out, _ = run(release(), monkeypatch)
    assert "more tables would be pulled alike" in page
    assert "combine" not in "".join(BLOCK.findall(page))
    assert "(standard errors cannot be estimated from one table)" in out
    assert "(no standard errors)" in out


def test_bin_labels(release, monkeypatch):
    _, out, _ = run(release("--datasets", 3, "--rows-in", 300, "--decode", "labels"), monkeypatch)
    assert "charge = [0, 10)" in out


def test_without_statsmodels(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    _, out, _ = run(release("--datasets", 3, "--rows-in", 300), monkeypatch)
    assert out.startswith("share: ")
    assert "intercept" not in out


def made_by_hand(folder, ledger, *, schema=BOOK, table_format="parquet", datasets=2):
    (folder / "privacy.json").write_text(ledger.to_json())
    for number in range(1, datasets + 1):
        TABLE.sample(200, seed=number).write_parquet(folder / f"synthetic-{number}.parquet")
    page = page_of(ledger, schema, rows=200, datasets=datasets, table_format=table_format)
    (folder / "HOW-TO-ANALYSE.md").write_text(page)


def test_shared_urns(tmp_path, monkeypatch):
    event = UrnDraws(**ALPHA, visits=9, rows=200, datasets=2)
    made_by_hand(tmp_path, Ledger((event,), (stated("rows-in", {"rows_in": 300}),)))
    page, out, _ = run(tmp_path, monkeypatch)
    assert "These tables have no intervals" in page
    assert "cannot be given" in out


def test_kept_columns_need_no_row_count(tmp_path, monkeypatch):
    made_by_hand(tmp_path, Ledger((NotPrivate.because("kept-columns"),)))
    page, _, names = run(tmp_path, monkeypatch)
    assert "T = v + b/K" in page
    assert "rows_in" not in page
    assert "none is a real record" not in page
    assert names["result"].rule == "partial"


def test_a_single_numeric_feature_has_no_regression(tmp_path, monkeypatch):
    made_by_hand(
        tmp_path, Ledger((), (stated("rows-in", {"rows_in": 300}),)), schema=Schema((CHARGE,))
    )
    page, out, names = run(tmp_path, monkeypatch)
    assert "statsmodels" not in page
    assert out.startswith("share: ")
    tables = [pl.read_parquet(tmp_path / f"synthetic-{i}.parquet") for i in (1, 2)]
    shares = [(table["charge"] >= 20).sum() / 200 for table in tables]
    assert names["result"].estimate == pytest.approx(sum(shares) / 2)


def test_names_cannot_leave_their_place(tmp_path, monkeypatch):
    odd = Feature("a'\n\"b", categories=("it's\nraise SystemExit", "```"))
    ledger = Ledger(
        (PegsDraws(**ALPHA, rows=200, datasets=2),), (stated("rows-in", {"rows_in": 300}),)
    )
    made_by_hand(tmp_path, ledger, schema=Schema((odd, ZIP)))
    for number in (1, 2):
        table = pl.DataFrame({odd.name: list(odd.categories) * 5, "zip": ["007", "7"] * 5})
        table.write_parquet(tmp_path / f"synthetic-{number}.parquet")
    _, out, _ = run(tmp_path, monkeypatch)
    assert "share: 0.5000" in out


def test_the_privacy_page_repeats_the_statement():
    draws = PegsDraws(**ALPHA, rows=200, datasets=2)
    for ledger in (
        Ledger((draws,)).assume(stated("rows-in", {"rows_in": 300})),
        Ledger((draws, NotPrivate.because("kept-columns"))),
    ):
        page = privacy_page(ledger, about=NOTHING, date="", policy=NO_POLICY)
        said = ledger.statement()
        assert said.split(" In plain words")[0].split("\n")[0] in page
        lines = [line for line in said.splitlines() if line.startswith("- ")]
        assert lines
        assert all(line in page for line in lines)


def test_tables_may_be_parquet(release, monkeypatch):
    exact = ("--method", "cart", "--no-guarantee")
    folder = release("--datasets", 2, "--rows-in", 300, "--format", "parquet", budget=exact)
    _, out, _ = run(folder, monkeypatch)
    assert "interval" in out
    assert sorted(path.name for path in folder.glob("synthetic-*")) == [
        "synthetic-1.parquet",
        "synthetic-2.parquet",
    ]


def test_completed_tables_are_combined_by_the_nested_rule(release, monkeypatch):
    flags = ("--datasets", 3, "--rows-in", 300, "--complete", "--imputations", 2)
    exact = ("--method", "cart", "--no-guarantee")
    page, out, names = run(release(*flags, budget=exact), monkeypatch)
    assert "**nested**" in page
    assert "T = (n/N) (v + w) + b/K" in page
    assert "2 completed versions of each table" in page
    assert "```r\nK <- 3\nr <- 2\n" in page
    assert names["result"].rule == "nested"
    assert len(names["tables"]) == 6
    assert re.search(r"^zip = 007 .* nested$", out, re.MULTILINE)


def test_completed_tables_with_noise_of_their_own_are_averaged(release, monkeypatch):
    once = ("--method", "pegs-once", "--epsilon", 5, "--delta", 1e-6)
    folder = release("--datasets", 3, "--complete", budget=once)
    page, out, names = run(folder, monkeypatch)
    assert "**own-noise**" in page
    assert "spread of imputing is in b" in page
    assert names["result"].rule == "own-noise"
    assert "missing for reasons" in out


def test_one_completed_table(release, monkeypatch):
    exact = ("--method", "cart", "--no-guarantee")
    page, out, names = run(release("--complete", budget=exact), monkeypatch)
    assert "3 completed versions of the table" in page
    assert "cannot be estimated from one synthetic table" in page
    assert names["file"] == "completed-1-1.csv"
    assert "(no standard errors)" in out
