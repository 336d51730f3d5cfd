"""Figures of the report: what they hold, and all of them as files."""

from itertools import combinations

import pytest
from every_record import FEATURES, every_record, missing, record

from pegsynth.errors import OutputError
from pegsynth.evaluation import Marginal, Metrics
from pegsynth.publishing.report.features import OPEN_FEATURES, feature_cards, pair_figures, worst
from pegsynth.publishing.report.figure import Table
from pegsynth.publishing.report.html import figures, write_figures
from pegsynth.publishing.report.number_figures import MOST_TERMS, regression_figures
from pegsynth.publishing.report.risk_figures import risk_figures, risk_maps
from pegsynth.publishing.report.wording import Lookup


def lookup(*records, features=(), constant=()):
    marginals = tuple(
        Marginal(
            feature=f,
            label="",
            categories=("a", "b"),
            original=(1.0, 0.0) if f in constant else (0.5, 0.5),
            synthetic=(1.0, 0.0),
        )
        for f in features
    )
    return Lookup(Metrics(summary={}, records=records, marginals=marginals))


@pytest.fixture(scope="module")
def found():
    return Lookup(every_record())


def test_pairs_are_listed_by_what_lies_above_the_floor():
    pairs = [record("tvd2", "a, b", 0.3, 0.25), record("tvd2", "b, c", 0.2, 0.05)]
    both = pair_figures(lookup(*pairs, features="abc"))
    assert [figure.name for figure in both] == ["pairs", "pairs-excess"]
    assert both[0].table.rows == (
        ("b, c", "20.00%", "5.00%", "15.00%"),
        ("a, b", "30.00%", "25.00%", "5.00%"),
    )
    assert [line.subject for line in worst(lookup(*pairs), "tvd2", 1)] == ["b, c"]


def test_a_pair_below_its_floor_is_not_negative():
    (figure, _) = pair_figures(lookup(record("tvd2", "a, b", 0.1, 0.2), features="ab"))
    assert figure.table.rows == (("a, b", "10.00%", "20.00%", "0.00%"),)


def test_features_with_one_category_are_in_no_list_of_the_worst():
    pairs = [
        record("tvd2", "a, b", 0.3, 0.25),
        record("tvd2", "a, one", 0.9, 0.0),
        record("conditional_distance", "a | one", 0.9, 0.0),
        record("conditional_distance", "a | b", 0.2, 0.1),
    ]
    ours = lookup(*pairs, features=("a", "b", "one"), constant=("one",))
    assert [line.subject for line in worst(ours, "tvd2", 9)] == ["a, b"]
    assert [line.subject for line in worst(ours, "conditional_distance", 9)] == ["a | b"]
    figure, _ = pair_figures(ours)
    assert [row[0] for row in figure.table.rows] == ["a, b"]
    assert figure.caption.endswith("Features with one category (1) are left out.")


def test_features_with_one_category_are_folded_away_first():
    names = ("one", *(f"f{i}" for i in range(OPEN_FEATURES)))
    below = [record("tvd1", name, 0.1, 0.2) for name in names[1:]]
    ours = lookup(record("tvd1", "one", 0.0, 0.0), *below, features=names, constant=("one",))
    assert [card["name"] for card in feature_cards(ours)["folded"]] == ["one"]


def test_words_about_colours_hold_on_a_light_and_on_a_dark_page(found):
    for figure in figures(found.metrics):
        assert not {"dark", "light", "black", "white"} & set(figure.caption.lower().split())


def test_a_regression_that_was_not_fitted_has_no_panel():
    empty, fitted = "I(y > 9) ~ a", "y ~ a"
    records = [
        missing(name, f"{empty} :: {term}", "the response is constant")
        for name in ("coefficient", "coefficient_original", "interval_overlap")
        for term in ("Intercept", "a")
    ]
    assert regression_figures(lookup(*records)) == []
    records.append(record("coefficient_original", f"{fitted} :: a", 0.5, spread=0.1))
    (only,) = regression_figures(lookup(*records))
    assert (only.name, only.title) == ("regression-1", fitted)


def test_names_with_commas_are_told_apart():
    names = ("age, years", "sex", "years, sex")
    records = [record("tvd2", f"{a}, {b}", 0.1, 0.0) for a, b in combinations(names, 2)]
    pairs = lookup(*records, features=names).pairs("tvd2")
    assert [(a, b) for a, b, _ in pairs] == list(combinations(names, 2))


def test_regressions_are_tables_of_both_sides(found):
    first, second = regression_figures(found)
    assert first.title == "I(charge > 25000) ~ age.yrs + sev + cat + los"
    assert first.table.columns == (
        "Term",
        "Original",
        "Interval",
        "Synthetic",
        "Interval",
        "Overlap",
    )
    assert first.table.rows[1] == ("age.yrs", "2", "1.6 to 2.4", "2.2", "1.6 to 2.8", "0.7")
    assert second.table.rows[3] == ("cat", "12000", "9600 to 14400", "n/a", "", "n/a")


def test_of_many_terms_those_that_agree_least_are_drawn():
    terms = range(MOST_TERMS + 5)
    records = [record("coefficient", f"y ~ x :: t{i}", 1, 1, spread=1) for i in terms]
    records += [record("interval_overlap", f"y ~ x :: t{i}", i / 100, 1) for i in terms]
    (figure,) = regression_figures(lookup(*records))
    assert f"Of 35 terms the {MOST_TERMS} that agree least are drawn." in figure.caption
    drawn = {row["label"] for row in figure.rows}
    assert drawn == {f"t{i}" for i in range(MOST_TERMS)}
    assert len(figure.table.rows) == 35


def test_risks_stand_beside_their_references(found):
    by_name = {figure.name: figure for figure in risk_figures(found)}
    assert list(by_name) == ["intruder", "intruder-amounts", "membership", "people"]
    assert by_name["intruder"].table.rows == (
        ("MDC | age.yrs, sex, patzip", "this release", "62.00%", "59.00% to 65.00%", "1,000"),
        ("MDC | age.yrs, sex, patzip", "bootstrap", "45.00%", "42.00% to 48.00%", "1,000"),
        ("MDC | age.yrs, sex, patzip", "hold-out", "60.00%", "57.00% to 63.00%", "1,000"),
        ("MDC | age.yrs, sex, patzip", "people never given", "63.00%", "60.00% to 66.00%", "1,000"),
    )
    assert by_name["intruder-amounts"].table.rows[0][2] == "13020"
    whose = [row[1] for row in by_name["people"].table.rows]
    assert whose[:4] == ["this release", "original", "this release", "people never given"]
    assert by_name["membership"].table.rows[0][:3] == (
        "nearest released row",
        "this release",
        "0.52",
    )


def test_what_was_not_computed_is_not_drawn():
    assert risk_figures(lookup(missing("membership_auc", "", "there is no hold-out"))) == []
    assert risk_maps(lookup(missing("tvd2", "", "one feature"))) == []
    assert regression_figures(lookup(record("tvd2", "", 0.1))) == []
    assert pair_figures(lookup(missing("tvd2", "a, b", "why"), features="ab")) == []


def test_maps_hold_the_release_and_its_references(found):
    maps = risk_maps(found)
    assert [figure.title for figure in maps] == [
        "Intruder's error: MDC | age.yrs, sex, patzip",
        "Intruder's error: charge | age.yrs, los, patzip",
        "Membership, area under the curve: nearest released row",
        "Uniques that reappear: age.yrs, sex, patzip",
    ]
    assert maps[0].table.rows == (
        ("bootstrap", "", "2.00%", "45.00%"),
        ("this release", "", "11.00%", "62.00%"),
    )
    assert all(figure.drawn().targets for figure in maps)


def test_without_an_attack_the_map_shows_uniqueness():
    (figure,) = risk_maps(lookup(record("tvd2", "", 0.1, 0.02), record("uniqueness", "", 0.3, 0.2)))
    assert figure.title == "Unique rows"


def test_features_furthest_from_the_original_are_open():
    names = [f"f{i}" for i in range(45)]
    records = [record("tvd1", name, i / 100, 0.0) for i, name in enumerate(names)]
    cards = feature_cards(lookup(*records, features=names))
    assert [card["name"] for card in cards["open"]] == names[5:]
    assert [card["name"] for card in cards["folded"]] == names[:5]
    assert cards["left_out"] == 0


def test_every_figure_is_written_as_svg_and_png(tmp_path):
    metrics = every_record()
    small = Metrics(
        summary={},
        records=tuple(r for r in metrics.records if r.name in ("tvd2", "uniqueness")),
        marginals=metrics.marginals[:2],
    )
    written = write_figures(small, tmp_path / "deep" / "figures")
    names = ["feature-001", "feature-002", "pairs", "pairs-excess", "people", "map-1"]
    assert [path.name for path in written] == [f"{n}.{kind}" for n in names for kind in KINDS]
    assert all(path.stat().st_size > 1000 for path in written)
    assert all(path.stat().st_mode & 0o077 == 0 for path in written)


KINDS = ("svg", "png")


def test_columns_of_figures_are_told_from_words():
    rows = (
        ("a", "12.3%", "-1.2 to 3", "1,000", "reproduced", "", "3 of 4 methods", "1.36 [1.3, 1.4]"),
        ("b", "n/a", "", "<0.01%", "n/a", "n/a", "2", "-8.36\u00d710⁻⁷"),
    )
    table = Table(tuple("abcdefgh"), rows)
    assert table.figures == (False, True, True, True, False, True, False, True)


def test_every_figure_has_a_name_of_its_own():
    names = [figure.name for figure in figures(every_record())]
    assert len(set(names)) == len(names) == len(FEATURES) + 14


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_figures(every_record(), tmp_path / "file" / "figures")
