import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import resources

import pytest
from every_record import every_record, risk_records, table_records

from pegsynth.evaluation import Marginal, Metrics, Record
from pegsynth.publishing.report.html import render
from pegsynth.publishing.report.wording import number, percent

HOSTILE = "<script>alert('x')</script>"
STATEMENT = (
    "This release is private.\n\nAssumed to be public knowledge:\n- the schema & its edges\n"
)
GUARANTEE = {"kind": "approximate", "epsilon": 0.99, "delta": 1e-9, "rho": 0.01, "l": None}
VOID = {"meta", "br", "link", "img", "input", "hr"}


def record(name, subject, value, baseline):
    return Record(name=name, subject=subject, value=value, baseline=baseline, n=100, note="how")


def marginal(feature, size, label=""):
    labels = (HOSTILE, *(f"c{i}" for i in range(1, size)))
    shares = tuple(1 / size for _ in range(size))
    return Marginal(
        feature=feature, label=label, categories=labels, original=shares, synthetic=shares
    )


def metrics(tvd2=0.02, baseline=0.01, sizes=(3, 40, 5000)):
    headline = [record("tvd1", "", 0.01, 0.005), record("tvd2", "", tvd2, baseline)]
    ones = [record("tvd1", f"f{i}", 0.01 * i, 0.005) for i in range(len(sizes))]
    pairs = [record("tvd2", f"f0, <i>{i}</i>", i / 100, 0.01) for i in range(15)]
    return Metrics(
        summary={"tvd1": 0.01, "tvd2": tvd2, "regression_distance": None, "new measure": 3.0},
        records=(*headline, record("uniqueness", "", 0.5, 0.25), *ones, *pairs),
        marginals=tuple(marginal(f"f{i}", size, "<b>label</b>") for i, size in enumerate(sizes)),
    )


class Page(HTMLParser):
    """What a browser would see: tags in order, their attributes, the text."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], "", []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def source():
    return render(metrics(), statement=STATEMENT, guarantee=GUARANTEE, title=f"Report {HOSTILE}")


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_it_opens_with_the_warning_the_guarantee_the_card_and_the_verdict(page):
    order = [
        "Made from real data. Not for release.",
        "if you rerun or choose because of what you read here, the guarantees add up",
        "ε = 0.99 at δ = 1e-9",
        "real rows: 0.50%",
        "Close to the original.",
        "Details",
        "This release is private.",
        "the schema & its edges",
        "Summary",
        "Features side by side",
        "Two-way tables furthest above their floor",
    ]
    text = page.text.casefold().partition("skip to the text")[2]
    places = [text.index(each.casefold()) for each in order]
    assert places == sorted(places)


def test_the_whole_page_is_in_order():
    text = Page(render(every_record(), statement=STATEMENT, guarantee=GUARANTEE, title="t")).text
    order = [
        "Differentially private",
        "Numbers are off: the mean of",
        "roughly alike",
        "No measure of risk stands out",
        "Prediction, trained on synthetic",
        "Uniques that reappear alone",
        "Features side by side",
        "Numbers of every feature, original and synthetic",
        "Correlations, the furthest apart first",
        "Share of rows up to each value",
        "Rows out of place, by pair",
        "charge ~ age.yrs + sev + cat + los",
        "Wrong guesses of an intruder",
        "Membership, area under the curve",
        "People at risk",
        "Risk and utility on one map",
        "Intruder's error: charge | age.yrs, los, patzip",
        "not computed: the fit is separated",
        "Every figure on this page stands in metrics.json",
    ]
    place = text.index("Skip to the text")
    for words in order:
        place = text.index(words, place)


def test_a_missing_figure_has_its_reason_where_it_stands():
    reason = "not computed: no feature is a quasi-identifier"
    lacking = Record(name="uniqueness", subject="", value=None, note=reason)
    page = Page(render(Metrics(summary={"uniqueness": None}, records=(lacking,))))
    # The verdict, the summary, how it is computed, the list of all.
    assert page.text.count(reason) == 4
    unsaid = Page(render(Metrics(summary={"uniqueness": None}, records=())))
    assert "not computed; no reason was saved" in unsaid.text


def test_many_missing_figures_are_counted():
    lacking = [
        Record(name="tvd1", subject=f"feature {i}", value=None, note="not computed: why")
        for i in range(100)
    ]
    page = Page(render(Metrics(summary={}, records=tuple(lacking))))
    assert "40 more stand in metrics.json." in page.text


def test_faults_of_the_tables_come_before_the_verdict():
    lacking = Record(name="missing_column", subject="age", value=None, note="not in table 2")
    strange = record("unknown_values", HOSTILE, 0.01, 0.0)
    text = Page(render(Metrics(summary={}, records=(lacking, strange)))).text
    place = text.index("What was found in the tables")
    assert place < text.index("not in table 2") < text.index("There is no two-way table")
    assert f"Values that the schema does not list: {HOSTILE}" in text
    assert text.count("not in table 2") == 1


def test_a_ledger_without_a_kind_is_no_guarantee():
    page = Page(render(metrics(), statement="Nothing is promised.", guarantee={}))
    assert "No privacy guarantee" in page.text
    assert "No ledger was given" not in page.text


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["300 features", "10,000 categories"])
def test_the_page_stays_small(shape):
    whole = every_record()
    if shape == "300 features":
        names = [f"feature number {i}" for i in range(300)]
        marginals = tuple(marginal(name, 50) for name in names)
        whole = Metrics(
            summary=whole.summary,
            records=(*table_records(names), *risk_records()),
            marginals=marginals,
        )
    else:
        whole = every_record(sizes=(10_000,) * 13)
    source = render(whole)
    assert len(source.encode()) < 3_000_000
    text = Page(source).text
    if shape == "300 features":
        assert "Of 300 features the 40 furthest from the original are open." in text
        assert "The other 260 features, closer to the original" in text
        assert "Of 300 features the 30 with the largest errors are shown." in text


def test_hostile_text_is_shown_and_not_run(page):
    assert "script" not in page.tags
    assert "i" not in page.tags
    assert "b" not in page.tags
    assert page.text.count(HOSTILE) == 5  # title, heading, one category in each feature
    assert "<i>14</i>" in page.text


def test_nothing_is_fetched_and_no_script_runs(source, page):
    assert not re.search(r"https?://|url\(|@import|//[a-z]", source)
    for tag, attributes in page.attributes:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "form")
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for t, a in page.attributes if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_a_reader_without_eyes_or_mouse_finds_the_way(page):
    ids = {attributes["id"] for _, attributes in page.attributes if "id" in attributes}
    links = [attributes["href"][1:] for tag, attributes in page.attributes if tag == "a"]
    assert links[0] == "main"
    assert set(links) <= ids
    labelled = {a["aria-labelledby"] for _, a in page.attributes if "aria-labelledby" in a}
    assert labelled <= ids
    assert page.tags.count("table") == page.tags.count("caption")
    assert page.tags.count("h1") == 1
    assert dict(page.attributes)["html"] == {"lang": "en"}
    assert all("scope" in attributes for tag, attributes in page.attributes if tag == "th")


def test_long_features_are_folded_away(page):
    assert "and 10 more, less common" in page.text
    assert "and 4,970 more, less common" in page.text
    assert "The other 4,770 categories together: 95.40% of the original rows" in page.text


def test_worst_pairs_come_first(page):
    assert page.text.index("f0, <i>14</i>") < page.text.index("f0, <i>13</i>")
    assert "f0, <i>4</i>" not in page.text


def test_what_was_not_computed_is_not_zero(page):
    assert re.search(r"Regression distance.*n/a", page.text, re.DOTALL)
    assert "new measure" in page.text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0125, "As close as chance allows."),
        (0.03, "Close to the original."),
        (0.11, "Roughly alike"),
        (0.12, "Far apart"),
        (None, "There is no two-way table"),
    ],
)
def test_the_verdict_follows_its_rule(value, words):
    page = Page(render(metrics(value), statement="", guarantee=GUARANTEE, title="t"))
    assert words in page.text


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        ({"kind": "pure", "epsilon": 1.5, "delta": 0.0}, "ε = 1.5, for the whole release"),
        ({"kind": "l-diversity", "l": 2.0}, "l = 2.0; not differentially private"),
        ({"kind": "none"}, "No privacy guarantee"),
        ({}, "No ledger was given: nothing is known about a guarantee"),
        (None, "No ledger was given: nothing is known about a guarantee"),
        ({"kind": HOSTILE, "epsilon": 0.1}, "No privacy guarantee"),
    ],
)
def test_the_guarantee_in_one_line(guarantee, words):
    source = render(metrics(), statement="", guarantee=guarantee, title="t")
    assert words in Page(source).text
    assert "<script" not in source


def test_an_empty_result_is_still_a_page():
    page = Page(render(Metrics(summary={}, records=()), statement="", guarantee={}, title=""))
    assert "No one-way tables were saved." in page.text
    assert "No pairs of features were compared." in page.text
    assert "No regression was fitted." in page.text
    assert "No risk was measured." in page.text
    assert "A map needs two-way tables and a measure of risk." in page.text


def test_the_same_results_give_the_same_page(source):
    saved = Metrics.from_json(metrics().to_json())
    again = render(saved, statement=STATEMENT, guarantee=GUARANTEE, title=f"Report {HOSTILE}")
    assert again == source


def test_labels_that_are_empty_or_endless():
    shares = (0.5, 0.5)
    odd = Marginal(
        feature="f", label="", categories=("", "x" * 10_000), original=shares, synthetic=shares
    )
    source = render(
        Metrics(summary={}, records=(), marginals=(odd,)), statement="", guarantee={}, title="t"
    )
    assert "(empty)" in source
    assert "x" * 100 not in source


def test_light_dark_print_and_narrow(source):
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert rule in source
    assert 'name="viewport"' in source


def test_templates_are_package_data():
    folder = resources.files("pegsynth.publishing") / "templates"
    assert {"base.html.j2", "parts.html.j2", "report.css", "report.html.j2", "study.html.j2"} <= {
        entry.name for entry in folder.iterdir()
    }


def test_the_report_loads_nothing_that_computes():
    code = (
        "import sys, pegsynth.publishing.report.html, pegsynth.publishing.rendering as p;"
        "p._environment().get_template('report.html.j2');"
        "heavy = ('numpy', 'numba', 'polars', 'altair', 'vl_convert', 'pegsynth.evaluation');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.00%"), (1e-9, "<0.01%"), (0.12345, "12.35%"), (1, "100.00%")]
)
def test_percentages(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00012345, "0.000123"), (8.36e-7, "8.36\u00d710⁻⁷"), (1234.5, "1234"), (-2, "-2")],
)
def test_numbers(value, text):
    assert number(value) == text
