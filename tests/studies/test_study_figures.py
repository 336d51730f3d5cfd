"""Figures of the study: every one is there, shows what it is drawn from, and is drawn whole."""

from __future__ import annotations

import re

import pytest

from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from studies.paper.album import Album, Drawing
from studies.paper.figures import more_figures, paper_figures
from studies.paper.results import Results
from studies.paper.setting import setting_of
from studies.paper.size import TINY
from studies.paper.study_design import design_of
from studies.paper.yardstick import Yardstick

SCHEMA = discharge_schema()
SETTING = setting_of(SCHEMA)


@pytest.fixture(scope="module")
def album() -> Album:
    """Results of a whole design that were made up, all figures falling as the level grows."""
    design = design_of(TINY)
    yardstick = Yardstick.of(SETTING, encode(discharge(400, 1), SCHEMA))
    names = yardstick.measure(encode(discharge(50, 2), SCHEMA))
    shares = yardstick.histograms(encode(discharge(50, 2), SCHEMA))
    cells = {
        cell: dict.fromkeys(
            (*names, *shares, "alpha"), 0.3 + 0.1 * cell.repeat + 0.5 / (1 + (cell.level or 0))
        )
        | {"epsilon": cell.level}
        for cell in design.cells()
    }
    results = Results.of(
        cells,
        floors={"main": yardstick.floors(50)},
        coefficients={"main": yardstick.coefficients()},
    )
    return Album(results, design, SETTING, TINY.epsilons)


@pytest.fixture(scope="module")
def drawn(album: Album) -> dict[str, Drawing]:
    found = [*paper_figures(album), *more_figures(album)]
    named = {each.figure.name: each for each in found}
    assert len(named) == len(found)
    return named


def test_every_figure_of_the_paper_is_there(drawn) -> None:
    stems = ["histograms-charge", "histograms-age-yrs", "uniqueness", "attack-mdc", "attack-charge"]
    stems += ["coefficients-eps-0.1", "coefficients-eps-10"]
    stems += ["ru-regression-logistic", "ru-regression-linear"]
    for kind in ("ru-marginals", "ru-given-age-yrs", "ru-given-patzip"):
        stems += [kind, *(f"{kind}-by-feature-{p}" for p in ("public", "uniform", "original"))]
    stems += ["all-methods", "total-epsilon", "total-epsilon-risk", "l-diversity"]
    stems += ["total-epsilon-repriced"]
    stems += ["block-size", "seed-memory", "map-mdc", "map-charge"]
    assert set(stems) <= set(drawn)


def test_rows_are_known_and_panels_complete(drawn) -> None:
    for name, drawing in drawn.items():
        assert drawing.rows, name
        for row in drawing.rows:
            assert (
                row.get("y", row.get("utility", row.get("deviation", row.get("value")))) is not None
            )
    features = {row["facet"] for row in drawn["ru-given-patzip-by-feature-public"].rows}
    assert features == set(SCHEMA.names) - {"patzip"}
    pools = {row["facet"] for row in drawn["ru-marginals"].rows}
    assert pools == {"public seed rows", "uniform seed rows", "original seed rows"}


def test_floors_and_references_are_drawn(drawn, album) -> None:
    floor = album.results.floors["main"]["marginal_distance"]
    lines = [row for row in drawn["ru-marginals"].rows if row["series"] == "sampling floor"]
    assert [line["y"] for line in lines] == [floor] * 3
    for name in ("attack-mdc", "attack-charge", "ru-regression-linear"):
        assert {"bootstrap", "hold-out"} <= {row["series"] for row in drawn[name].rows}
    own = [row for row in drawn["uniqueness"].rows if "original" in row["series"]]
    assert own[0]["y"] == album.results.floors["main"]["uniqueness[age.yrs, sex, patzip]"]


def test_points_are_means_with_intervals(drawn, album) -> None:
    row = next(r for r in drawn["ru-marginals"].rows if r["series"] == "PMI" and r["x"] == 10.0)
    found = album.results.mean("pmi, public", 10.0, "marginal_distance")
    assert (row["y"], row["low"], row["high"]) == (found.value, found.low, found.high)


def test_the_page_shows_the_main_choice_and_files_the_rest(drawn) -> None:
    assert drawn["ru-marginals-by-feature-public"].section
    assert not drawn["ru-marginals-by-feature-uniform"].section


@pytest.mark.parametrize(
    "name",
    [
        "ru-marginals",
        "ru-marginals-by-feature-public",
        "attack-mdc",
        "histograms-age-yrs",
        "map-mdc",
    ],
)
def test_drawings_are_whole(drawn, name: str) -> None:
    text = drawn[name].figure.drawn().svg
    assert "undefined" not in text
    assert "NaN" not in text
    for row in drawn[name].rows:
        if row.get("facet"):
            assert re.sub("[^a-z]", "", row["facet"].lower()) in re.sub("[^a-z]", "", text.lower())
