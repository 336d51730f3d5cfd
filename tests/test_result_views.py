"""Results to look at: dataframes, pictures, and cards that stay short and say CONFIDENTIAL."""

import html
import re
import xml.etree.ElementTree as ET

import pandas as pd
import polars as pl
import pytest

import pegsynth
from pegsynth.errors import ParameterError
from pegsynth.evaluation.measuring import Evaluation
from pegsynth.evaluation.records import Marginal, Metrics, Record
from pegsynth.inference.pooled import Pooled
from pegsynth.inference.release_views import NO_GUARANTEE, tables_of
from pegsynth.inference.statistics import Estimate
from pegsynth.privacy import Ledger, NoisyCounts, NotPrivate, UnitBound
from pegsynth.publishing.result import Release
from pegsynth.schema import Feature, Schema
from pegsynth.views import CONFIDENTIAL, LONGEST, Picture, card, table
from small_release import small_schema
from studies.paper import RiskUtilityMap, Study
from studies.paper.results import Results
from studies.paper.ru_map import Point

WIDE = 200
HOSTILE = "<script>alert(1)</script> & \"quotes\" 'here'\n\x00" * 20
NOISE = NoisyCounts.laplace(4, cells=1, purpose="total")


def wide_metrics(kind=Metrics):
    """Figures of a table with 200 features, and of all pairs of 60 of them."""
    names = [f"feature {number}" for number in range(WIDE)]
    records = [Record(name="tvd1", subject="", value=0.1, baseline=0.05, note="x" * 200)]
    records += [
        Record(
            name="tvd1", subject=name, value=0.1, low=0.05, high=0.2, baseline=0.05, note="y" * 80
        )
        for name in names
    ]
    records += [
        Record(name="tvd2", subject=f"{a}, {b}", value=0.1, note="z" * 80)
        for a in names[:60]
        for b in names[:60]
    ]
    records.append(Record(name="pmse", subject="", value=None, note="not computed: why not"))
    shares = tuple([1 / 3] * 3)
    marginals = tuple(
        Marginal(feature=n, label=n, categories=("a", "b", "c"), original=shares, synthetic=shares)
        for n in names
    )
    return kind(summary={"tvd1": 0.1, "pmse": None}, records=tuple(records), marginals=marginals)


def wide_release(*events, datasets=3):
    columns = {f"feature {number}": [HOSTILE, "b"] for number in range(WIDE)}
    frames = [pl.DataFrame(columns) for _ in range(datasets)]
    return Release(frames, Ledger(events or (NOISE,)))


def wide_pooled(kind=pd.DataFrame):
    def fit(frame):
        return {f"term {n} {HOSTILE}": float(n) for n in range(WIDE)}, {
            f"term {n} {HOSTILE}": 1.0 for n in range(WIDE)
        }

    return pegsynth.pooled(fit, [kind({"a": [1]}), kind({"a": [2]})], rule="fully", rows_in=10)


def wide_map():
    point = Estimate(0.5, 0.4, 0.6, 10)
    points = tuple(Point("pegs", float(n + 1), point, point) for n in range(WIDE))
    cells = {("pegs", 1.0): [{"tvd1": 0.5}, {"tvd1": 0.25, "reason": "none"}]}
    return RiskUtilityMap("epsilon", "tvd1", points, Results(cells))


PLAN = pegsynth.plan(small_schema(), epsilon=2.0, rows=100, rows_in=1000)
LEDGER = Ledger((UnitBound(rows_per_unit=2, label=HOSTILE), *[NOISE] * WIDE))
CARDS = [
    (wide_metrics(), CONFIDENTIAL),
    (wide_metrics(Evaluation), CONFIDENTIAL),
    (wide_map(), CONFIDENTIAL),
    (Study("folder", (), wide_map().results), CONFIDENTIAL),
    (wide_release(NotPrivate.because("kept-columns")), NO_GUARANTEE),
    (wide_release(), ""),
    (wide_pooled(), ""),
    (wide_pooled().combined, ""),
    (PLAN, ""),
    (LEDGER, ""),
    (LEDGER.guarantee, ""),
]
results = pytest.mark.parametrize(("result", "warning"), CARDS, ids=lambda r: type(r).__name__)


def text_of(page):
    """The words of a card, which must be well-formed and without any foreign element."""
    root = ET.fromstring(page)
    assert {element.tag for element in root.iter()} <= {
        *("div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"),
    }
    return " ".join(root.itertext())


@results
def test_cards_are_short_and_say_what_is_confidential(result, warning):
    page = result._repr_html_()
    assert len(page) <= LONGEST
    words = text_of(page)
    assert words.startswith(warning)
    assert ("CONFIDENTIAL" in words) == bool(warning)


@results
def test_frames_hold_everything(result, warning):
    frame = result.to_frame()
    assert isinstance(
        frame,
        pd.DataFrame if isinstance(result, Pooled) else pl.DataFrame,
    )
    if isinstance(frame, pl.DataFrame):
        assert pl.Null not in frame.dtypes


def test_reprs_are_short():
    for result in (wide_metrics(), LEDGER, wide_metrics(Evaluation)):
        assert len(repr(result)) < 500
    assert repr(Ledger((NOISE,))) == "Ledger(1 events: epsilon = 0.25)"
    assert repr(wide_metrics()) == "Metrics(3802 records: tvd1=0.1)"
    table = pl.DataFrame({"a": [1, 2, 3]})
    told = repr(Release([table, table], Ledger((NOISE,))))
    assert told == "Release(2 synthetic tables of 3 rows and 1 columns: epsilon = 0.25)"


def test_a_card_of_the_longest_of_everything():
    rows = [[HOSTILE] * 50] * 50
    page = card(HOSTILE, [HOSTILE] * 9, table=table([HOSTILE] * 50, rows), warning=HOSTILE)
    assert len(page) <= LONGEST
    assert "more lines and 41 more columns" in text_of(page)
    assert "<script" not in page


def test_cut_text_never_ends_within_an_entity():
    for length in range(1, 60):
        page = table(["&" * length], [["<" * length]])
        text_of(f"<div>{page}</div>")
        assert not re.search(r"&[a-z]*…", page)
    assert html.escape("&") in page


def test_prices_on_cards_are_rounded_up():
    exact = NoisyCounts.laplace(3, cells=1, purpose="total")
    ledger = Ledger((exact,))
    assert "0.333334" in ledger._repr_html_()
    assert "0.333334" in ledger.guarantee._repr_html_()
    assert ledger.to_frame()["epsilon"].to_list() == [ledger.epsilon]


def test_the_frame_of_records():
    frame = wide_metrics().to_frame()
    assert frame.columns == list(Record.__struct_fields__)
    assert frame.height == 2 + WIDE + 3600
    assert frame.filter(pl.col("name") == "pmse")["value"].to_list() == [None]
    shares = wide_metrics().marginals[0].to_frame()
    assert shares.to_dict(as_series=False) == {
        "category": ["a", "b", "c"],
        "original": [1 / 3] * 3,
        "synthetic": [1 / 3] * 3,
    }


def test_the_frame_of_a_release_numbers_its_tables():
    frames = [
        pl.DataFrame({"a": ["x"], "dataset": [1]}),
        pl.DataFrame({"a": ["y"], "dataset": [2]}),
    ]
    for kind in (lambda f: f, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow):
        whole = Release([kind(frame) for frame in frames], Ledger()).to_frame()
        assert whole.columns == ["dataset_", "a", "dataset"]
        assert whole.rows() == [(1, "x", 1), (2, "y", 2)]


def test_the_frame_of_a_plan():
    frame = PLAN.to_frame()
    assert frame.height == len(PLAN.predictions) + len(PLAN.refused)
    best = frame.filter(pl.col("error") == pl.col("error").min())
    assert best["method"].to_list() == [PLAN.best.method]
    assert PLAN.best.method in PLAN._repr_html_()


def test_the_frame_of_a_study():
    frame = wide_map().results.to_frame()
    assert frame.rows() == [("pegs", 1.0, 1, "tvd1", 0.5), ("pegs", 1.0, 2, "tvd1", 0.25)]
    assert wide_map().to_frame().height == WIDE


# Pictures


PICTURES = [
    lambda: wide_metrics().plot(),
    lambda: wide_metrics().plot("tvd1"),
    lambda: wide_metrics().marginals[0].plot(),
    lambda: wide_map().plot(),
    lambda: wide_release().plot(),
    lambda: wide_pooled().plot(),
    lambda: pegsynth.combine([1.0, 2.0], [1.0, 1.0], rule="fully", rows=1, rows_in=1).plot(),
    lambda: LEDGER.plot(),
    lambda: PLAN.plot(),
]


@pytest.mark.parametrize("make", PICTURES)
def test_pictures_are_drawn_by_the_chart_builder(make):
    picture = make()
    assert isinstance(picture, Picture)
    root = ET.fromstring(picture._repr_svg_())
    assert root.tag.endswith("svg")
    page = picture._repr_html_()
    assert picture.svg in page
    assert (CONFIDENTIAL in page) == picture.confidential
    assert "<script" not in page


def test_only_figures_of_the_original_are_confidential():
    confidential = [make().confidential for make in PICTURES]
    assert confidential == [True] * 4 + [False] * 5
    assert wide_release(NotPrivate.because("kept-columns")).plot().confidential


def test_pictures_are_saved_for_their_owner_alone_where_they_are_confidential(tmp_path):
    svg, png = wide_metrics().plot().save(tmp_path / "figure")
    assert svg.read_text().startswith("<svg")
    assert [path.stat().st_mode & 0o777 for path in (svg, png)] == [0o600] * 2


def test_shares_of_a_release():
    numbers = pl.DataFrame({"n": list(range(100)), "c": ["x"] * 60 + ["y"] * 39 + [None]})
    picture = Release([numbers, numbers], Ledger((NOISE,))).plot("n", "c")
    shares = {(r["facet"], r["series"], r["category"]): r["value"] for r in picture.rows}
    assert shares["c", "table 2", "(missing)"] == 0.01
    assert shares["c", "table 1", "x"] == 0.6
    ours = [
        value for (facet, series, _), value in shares.items() if (facet, series) == ("n", "table 1")
    ]
    assert len(ours) == 12
    assert sum(ours) == pytest.approx(1)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ParameterError, match="nothing to draw"):
        Ledger((UnitBound(rows_per_unit=2),)).plot()
    with pytest.raises(ParameterError, match="there is no figure 'tvd9'; there are tvd1"):
        wide_metrics().plot("tvd9")
    with pytest.raises(ParameterError, match="no column 'q'"):
        wide_release().plot("q")


# A release is taken where tables are


SCHEMA = Schema(
    (Feature("a", categories=("x", "y")), Feature("b", categories=("0", "1"))), reviewed=True
)


@pytest.fixture(scope="module")
def release():
    data = pl.DataFrame({"a": ["x", "y", "y", "x"] * 25, "b": ["0", "1"] * 50})
    return data, pegsynth.synthesize(data, SCHEMA, method="pegs", epsilon=50, rows=40, datasets=3)


def test_evaluate_takes_a_release(release):
    data, made = release
    found = pegsynth.evaluate(data, made, SCHEMA)
    assert found.to_json() == pegsynth.evaluate(data, made.frames, SCHEMA).to_json()
    assert tables_of(made) == made.frames
    assert tables_of(data) == [data]


def test_pooled_takes_a_release_and_its_ledger(release):
    data, perturbed = release
    options = {"method": "pegs-once", "epsilon": 50, "rows": 40, "datasets": 3}
    made = pegsynth.synthesize(data, SCHEMA, **options, shared_noise=True)

    def share(frame):
        mean = (frame["a"] == "x").mean()
        return mean, 0.01

    with pytest.raises(ParameterError, match="there is no interval for these datasets"):
        pegsynth.pooled(share, perturbed, rows_in=100)
    by_release = pegsynth.pooled(share, made, rows_in=100)
    by_hand = pegsynth.pooled(share, made.frames, rows_in=100, ledger=made.ledger)
    assert repr(by_release) == repr(by_hand)
    assert "by the ledger" in repr(by_release)
    assert "partial" in repr(pegsynth.pooled(share, made, rule="partial"))


def test_a_release_shows_its_first_rows_and_promise(release):
    words = text_of(release[1]._repr_html_())
    assert "3 synthetic tables of 40 rows and 2 columns" in words
    assert "epsilon = 50" in words or "epsilon = 49.9" in words
