"""What a published model says it cannot answer (R28): structure only."""

import numpy as np
import pytest

from pegsynth import Feature, ParameterError, Schema
from pegsynth.methods.released._supported import (
    cell_deviation,
    merged_categories,
    missing_pairs,
    supported,
    together,
)
from pegsynth.methods.released._values import NoisyTable, Released

NAMES = ("age.yrs", "sex", "sev", "los", "zip code")
SIZES = (4, 2, 3, 3, 5)
SCHEMA = Schema(
    tuple(
        Feature(name, "nominal", tuple(f"{name} {code}" for code in range(size)))
        for name, size in zip(NAMES, SIZES, strict=True)
    ),
    reviewed=True,
)
LEVELS = (np.arange(4), np.arange(2), np.arange(3), np.arange(3), np.array([0, 1, 2, 2, 2]))


def table(*features, deviation=5.0):
    cells = int(np.prod([int(LEVELS[feature].max()) + 1 for feature in features]))
    return NoisyTable(features, np.full(cells, 1200 // cells), deviation)


def model(blocks=((0, 1), (0, 1, 2), (2, 3)), extra=((0, 3),), rare=500):
    ones = [NoisyTable((f,), np.full(size, 1000), 5.0) for f, size in enumerate(SIZES)]
    ones[0].counts[3] = rare
    return Released(
        (4000, 2.0),
        tuple(ones),
        (False,) * 5,
        (False,) * 5,
        loud=False,
        levels=LEVELS,
        order=(0, 1, 2, 3, 4),
        blocks=tuple(table(*each) for each in blocks),
        extra=tuple(table(*each) for each in extra),
    )


CASES = [
    ("sev ~ age.yrs + sex", "supported", ()),
    ("sev ~ age.yrs * sex", "supported", ()),
    ("los ~ age.yrs + sev", "supported", ()),
    ("los ~ C(age.yrs) + np.log(sev)", "supported", ()),
    ("los ~ age.yrs * sev", "not supported", (("age.yrs", "sev", "los"),)),
    ("los ~ age.yrs:sev", "not supported", (("age.yrs", "sev", "los"),)),
    ("los ~ age.yrs + sev + sex", "not supported", (("sex", "los"),)),
    ("los ~ 1", "supported", ()),
    ("los", "supported", ()),
    ("sex + los", "not supported", (("sex", "los"),)),
    ("`zip code` + sex", "not supported", (("sex", "zip code"),)),
    ('los ~ Q("zip code") - 1', "not supported", (("los", "zip code"),)),
    ("I(los > 2) ~ age.yrs", "supported", ()),
    ("los ~ (age.yrs + sev)", "not supported", (("age.yrs", "sev", "los"),)),
]


@pytest.mark.parametrize(("formula", "status", "missing"), CASES)
def test_formulas(formula, status, missing):
    found = supported(model(), SCHEMA, formula)
    assert found.status == status
    assert found.missing == missing
    assert found.flags[0] == status
    assert str(found).startswith(status)
    for names in missing:
        assert " x ".join(names) in str(found)
    only_pairs = formula in ("los ~ age.yrs + sev", "los ~ C(age.yrs) + np.log(sev)")
    assert ("every pair" in str(found)) == only_pairs


def test_merged_levels_are_named_where_they_matter():
    with_zip = model(blocks=((3, 4),))
    found = supported(with_zip, SCHEMA, "los ~ `zip code`")
    assert found.flags == ("merged",)
    assert found.merged == ("zip code",)
    # One-way counts are of all categories.
    assert supported(with_zip, SCHEMA, "`zip code`").flags == ("supported",)


def test_values_inside_bins_are_related_to_nothing_else():
    wide, single = (0.0, 5.0, 9.0, 20.0), (0.0, 1.0, 2.0, 3.0)
    for edges, status in ((wide, "supported by bins only"), (single, "supported")):
        los = Feature("los", "numeric", edges=edges, dtype="int64")
        book = Schema((*SCHEMA.features[:3], los, SCHEMA.features[4]), reviewed=True)
        assert supported(model(), book, "los ~ sev").status == status
        assert supported(model(), book, "los").status == "supported"


@pytest.mark.parametrize(("count", "flagged"), [(0, True), (5, True), (500, False)])
def test_categories_below_the_noise_are_named(count, flagged):
    found = supported(model(rare=count), SCHEMA, "age.yrs ~ sex")
    assert ("below the noise" in found.flags) == flagged
    assert found.below_noise == ({"age.yrs": ("age.yrs 3",)} if flagged else {})


@pytest.mark.parametrize(
    ("formula", "match"),
    [("", "no feature"), ("1 ~ 2", "no feature"), ("los ~ sev ~ sex", "one ~"), ("a ~ b", "'a'")],
)
def test_bad_formulas(formula, match):
    with pytest.raises(ParameterError, match=match):
        supported(model(), SCHEMA, formula)


def test_counts_are_not_looked_at_for_what_is_held():
    """The same structure with other counts gives the same answer."""
    first, second = model(), model()
    for each in (*second.blocks, *second.extra):
        each.counts[:] = 0
    for formula, _, _ in CASES:
        assert supported(first, SCHEMA, formula) == supported(second, SCHEMA, formula)


def test_structure_by_hand():
    released = model()
    assert together(released, (2, 0, 1))
    assert not together(released, (0, 2, 3))
    assert missing_pairs(released, (0, 1, 3)) == [(1, 3)]
    assert merged_categories(released, 4) == [2, 3, 4]
    # One-way 5; (0, 1): 5 with 2 cells for one of feature 0; (0, 1, 2): 6; (0, 3): 3.
    wanted = (1 / 25 * (1 + 1 / 2 + 1 / 6 + 1 / 3)) ** -0.5
    assert cell_deviation(released, {0: 3}) == pytest.approx(wanted)
    assert cell_deviation(released, {0: 3, 3: 1}) == pytest.approx(5)
    assert cell_deviation(released, {1: 0, 3: 1}) == float("inf")
    assert cell_deviation(released, {4: 3}) == pytest.approx(5)
