"""``pegs combine``: a table from a file of estimates, or one message."""

import pytest

from command import SECRET, check_refused, done, pegs
from pegsynth import Ledger, combine
from pegsynth.privacy import NotPrivate
from pegsynth.privacy.assumptions import stated
from pegsynth.privacy.draw_events import UrnDraws

GOOD = """term,estimate,std_error
age,10,1
sex,1,0.5
age,12,2
sex,1.1,0.5
age,14,3
sex,1.2,0.5
"""
ROWS = ("--rows", 250, "--rows-in", 1000)


@pytest.fixture
def estimates(tmp_path):
    """Give a writer of estimate files."""

    def write(text):
        (tmp_path / "estimates.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / "estimates.csv"

    return write


def table(outcome):
    """Read the printed table: figures by term."""
    header, *lines = outcome.out.partition("\n\n")[0].splitlines()
    assert header.split() == ["term", "estimate", "std_error", "dof", "low", "high", "rule"]
    return {line.split()[0]: line.split()[1:] for line in lines}


def test_a_table_with_its_rule_and_notes(estimates):
    outcome = done("combine", estimates(GOOD), *ROWS)
    found = table(outcome)
    wanted = combine([10, 12, 14], [1, 4, 9], rows=250, rows_in=1000)
    low, high = wanted.interval()
    figures = [wanted.estimate, wanted.std_error, wanted.degrees_of_freedom, low, high]
    assert list(found) == ["age", "sex"]
    assert [float(text) for text in found["age"][:-1]] == pytest.approx(figures, rel=1e-4)
    assert found["age"][-1] == found["sex"][-1] == "plug-in"
    assert "0.95 interval" in outcome.out
    assert "- no rule covers" in outcome.out


@pytest.mark.parametrize("rule", ["plug-in", "fully", "partial", "shared-urn"])
def test_every_rule(estimates, rule):
    outcome = done("combine", estimates(GOOD), "--rule", rule, *ROWS)
    assert table(outcome)["sex"][-1] == rule
    assert ("not positive" in outcome.out) == (rule == "fully")


def test_variances_datasets_and_levels(estimates):
    # Datasets may come in any order, columns too; a byte order mark is no part of a name.
    text = "\ufeffdataset,variance,term,estimate\n1,1,a b,3\n2,4,c,5\n1,4,c,6\n2,1,a b,4\n"
    outcome = done("combine", estimates(text), "--level", 0.5, *ROWS)
    assert "a b " in outcome.out
    assert "0.5 interval" in outcome.out
    wide = done("combine", estimates(text), "--level", 0.99, *ROWS)
    assert float(table(wide)["c"][3]) < float(table(outcome)["c"][3])


def test_the_ledger_tells_rule_and_rows(estimates, tmp_path):
    event = UrnDraws(
        alpha_numerator=1, alpha_denominator=1, features=2, visits=9, rows=250, datasets=3
    )
    file = tmp_path / "privacy.json"
    file.write_text(Ledger((event,), (stated("rows-in", {"rows_in": 1000}),)).to_json())
    check_refused(pegs("combine", estimates(GOOD), "--ledger", file), "no interval")
    kept = Ledger((NotPrivate.because("kept-columns"),), (stated("rows-in", {"rows_in": 1000}),))
    file.write_text(kept.to_json())
    outcome = done("combine", estimates(GOOD), "--ledger", file)
    assert table(outcome)["age"][-1] == "partial"
    assert "by the ledger: some columns hold original values" in outcome.out
    by_flag = done("combine", estimates(GOOD), "--rule", "partial")
    assert table(by_flag) == table(outcome)


BAD = {
    "no term": ("name,estimate,variance\na,1,1\n", "'term'"),
    "no estimate": ("term,variance\na,1\n", "'estimate'"),
    "no variance": ("term,estimate\na,1\n", "variance or std_error"),
    "both": ("term,estimate,variance,std_error\na,1,1,1\n", "not both"),
    "twice a column": ("term,estimate,estimate,variance\na,1,1,1\n", "'estimate'"),
    "empty": ("", "'term'"),
    "heading only": ("term,estimate,variance\n", "no estimates"),
    "one dataset": ("term,estimate,variance\na,1,1\nb,1,1\n", "at least 2 datasets"),
    "not a number": (f"term,estimate,variance\na,1,1\na,{SECRET},1\n", "line 3", "estimate"),
    "no number": ("term,estimate,std_error\na,1,1\na,1,\n", "line 3", "std_error"),
    "short line": ("term,estimate,std_error\na,1,1\na,1\n", "line 3", "std_error"),
    "long line": ("term,estimate,variance\na,1,1\na,1,1,1\n", "line 3"),
    "nameless": ("term,estimate,variance\na,1,1\n,1,1\n", "line 3", "term"),
    "negative variance": ("term,estimate,variance\na,1,-1\na,1,1\n", "line 2", "negative"),
    "negative error": ("term,estimate,std_error\na,1,1\na,1,-1\n", "line 3", "negative"),
    "nan": ("term,estimate,variance\na,1,1\na,nan,1\n", "finite"),
    "infinite": ("term,estimate,variance\na,1,1\na,1,inf\n", "finite"),
    "other K": ("term,estimate,variance\na,1,1\na,1,1\nb,1,1\n", "'a'", "'b'"),
    "other datasets": (
        "dataset,term,estimate,variance\n1,a,1,1\n2,a,1,1\n1,b,1,1\n3,b,1,1\n",
        "same datasets",
    ),
    "twice in a dataset": ("dataset,term,estimate,variance\n1,a,1,1\n1,a,1,1\n", "'a'", "twice"),
    "no text": (b"term,estimate,variance\n\xff\xfe,1,1\n", "UTF-8"),
    "nul": (b'term,estimate,variance\n"a,1,1\n', "CSV"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_estimates(estimates, case):
    text, *words = BAD[case]
    check_refused(pegs("combine", estimates(text), *ROWS), *words)


def test_bad_options(estimates, tmp_path):
    file = estimates(GOOD)
    check_refused(pegs("combine", file), "--rows", "--rows-in", "plug-in")
    check_refused(pegs("combine", file, "--rule", "fully", "--rows", 9), "not positive")
    check_refused(pegs("combine", file, "--rule", "proper", *ROWS), "--rule", "shared-urn")
    check_refused(pegs("combine", file, "--rows", 0, "--rows-in", 9), "rows")
    check_refused(pegs("combine", file, "--level", 95, *ROWS), "level")
    check_refused(pegs("combine", tmp_path / "none.csv", *ROWS), "none.csv")
    check_refused(pegs("combine", tmp_path, *ROWS), tmp_path.name)
    check_refused(pegs("combine", file, "--ledger", tmp_path / "none.json"), "none.json")
    check_refused(pegs("combine", file, "--ledger", file), "not a ledger")


COMPLETED = """term,dataset,imputation,estimate,variance
age,2,1,12,5
age,1,1,9,3
age,1,2,11,4
age,2,2,16,4
"""


def test_completed_tables_are_combined_by_the_nested_rule(estimates):
    found = table(done("combine", estimates(COMPLETED), *ROWS))
    wanted = combine([9, 11, 12, 16], [3, 4, 5, 4], imputations=2, rows=250, rows_in=1000)
    assert found["age"][-1] == "nested"
    assert float(found["age"][1]) == pytest.approx(wanted.std_error, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COMPLETED + "age,2,3,16,4\n", "not as many imputations"),
        (COMPLETED + "age,2,2,16,4\n", "twice for one dataset"),
        (COMPLETED.replace("dataset,", "table,"), "needs a column dataset"),
    ],
)
def test_completed_tables_that_do_not_fit_are_refused(estimates, text, message):
    check_refused(pegs("combine", estimates(text), *ROWS), message)
