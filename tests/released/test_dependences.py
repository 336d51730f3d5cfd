"""Features that another one tells: scores by enumeration, maps by hand, rows that obey (R33)."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from once_tables import whole_of

from pegsynth.errors import ModelError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._details import (
    MAP_PURPOSES,
    MOST_MAP,
    _is_open,
    allowed_by,
    map_share,
    overlap,
    rows_explained,
    tell,
    told_details,
)
from pegsynth.methods.released._draw import draw_rows, take_rows
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._replicates import Laws
from pegsynth.methods.released._stored import loaded_released, stored_released
from pegsynth.methods.released._values import Domain, NoisyTable
from pegsynth.methods.stored_model import StoredModel
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

SIZES = (12, 4, 12, 3)
"""A code, its group, the code by another name, and something else."""
GROUPS = np.arange(12) // 3
NAMES = np.random.default_rng(3).permutation(12)


def coded_rows(rows=6000, *, seed=2):
    words = np.random.default_rng(seed)
    code = words.choice(12, rows, p=np.arange(1, 13) / 78)
    other = (code % 3 + (words.random(rows) < 0.3)) % 3
    return np.stack([code, GROUPS[code], NAMES[code], other], axis=1).astype(np.uint8)


def released_of(epsilon=2.0, delta=1e-9, *, rows=6000, steps=None, apart=(), codes=None):
    stream = RandomStream(5)
    budget_filter = PrivacyFilter(whole_of(epsilon, delta), stream)
    released, fit = release_blocks(
        coded_rows() if codes is None else codes,
        Domain(SIZES, (False,) * 4, apart=frozenset(apart)),
        budget_filter,
        Work(stream, steps=steps),
        rows=rows,
    )
    return released, fit, budget_filter


def pair_error(first, second, pair):
    shape = [SIZES[each] for each in pair]
    tables = [
        np.bincount(np.ravel_multi_index(rows[:, list(pair)].T.astype(int), shape), minlength=144)
        / len(rows)
        for rows in (first, second)
    ]
    return np.abs(tables[0] - tables[1]).sum() / 2


# Scores


def tables_and_neighbours(shape, most):
    cells = shape[0] * shape[1]
    for counts in product(range(most + 1), repeat=cells):
        for cell in range(cells):
            more = list(counts)
            more[cell] += 1
            yield np.array(counts).reshape(shape), np.array(more).reshape(shape)


EXPECTED = [np.full((2, 3), 0.4), np.array([[2.6, 0.2, 0.0], [1.0, 3.4, 0.5]])]


@pytest.mark.parametrize("expected", EXPECTED, ids=["flat", "uneven"])
def test_rows_explained_and_scores_move_by_at_most_one(expected):
    for table, neighbour in tables_and_neighbours((2, 3), 2):
        explained = [rows_explained(each, 1) for each in (table, neighbour)]
        common = [overlap(each, expected) for each in (table, neighbour)]
        assert explained[1] - explained[0] in (0, 1)
        assert common[1] - common[0] in (0, 1)
        assert abs((explained[1] - common[1]) - (explained[0] - common[0])) <= 1


def test_the_error_that_a_map_saves_moves_by_three():
    """The twin: what looks like the natural score has three times the sensitivity."""

    def saved(table, expected):
        away = np.abs(table - np.rint(expected)).sum()
        return away - 2 * (table.sum() - rows_explained(table, 1))

    expected = EXPECTED[1]
    moved = {
        int(saved(neighbour, expected) - saved(table, expected))
        for table, neighbour in tables_and_neighbours((2, 3), 2)
    }
    assert max(map(abs, moved)) == 3


def test_explained_rows_in_both_directions():
    table = np.array([[5, 0, 0], [0, 3, 2]])
    assert rows_explained(table, 1) == 8
    assert rows_explained(table, 0) == 10
    assert overlap(table, np.array([[2.4, 1.0, 1.0], [2.0, 9.0, 1.0]])) == 2 + 3 + 1


# The search


def test_codes_groups_and_names_are_found():
    released, _, budget_filter = released_of()
    told = {table.features[1] for table in released.maps}
    assert {1, 2} <= told or {1, 0} <= told
    assert all(1 in table.features or {0, 2} == set(table.features) for table in released.maps)
    events = [each for each in budget_filter.events if isinstance(each, NoisyCounts)]
    maps = [each for each in events if each.purpose == "map"]
    assert [each.table_cells for each in maps] == [len(t.counts) for t in released.maps]
    assert {each.purpose for each in events} >= MAP_PURPOSES


def test_nothing_is_found_where_nothing_is_told():
    codes = coded_rows()
    for feature in range(4):
        np.random.default_rng(feature).shuffle(codes[:, feature])
    released, _, budget_filter = released_of(codes=codes)
    assert released.maps == ()
    spent = [each for each in budget_filter.events if getattr(each, "purpose", "") in MAP_PURPOSES]
    assert len(spent) == 1


def test_features_that_rules_or_values_speak_of_are_left_alone():
    released, _, _ = released_of(apart=range(3))
    assert released.maps == ()


def test_a_search_that_noise_would_drown_is_not_begun():
    _, _, budget_filter = released_of(0.02)
    purposes = {getattr(each, "purpose", "") for each in budget_filter.events}
    assert not purposes & {"dependence", *MAP_PURPOSES}


def test_a_step_can_be_left_out():
    released, _, _ = released_of(steps=Steps(dependences=False))
    assert released.maps == ()


def test_a_feature_is_told_once_and_never_in_a_circle():
    def found(*pairs):
        return [NoisyTable(pair, np.zeros(1), 1.0) for pair in pairs]

    assert _is_open((0, 1), [])
    assert not _is_open((2, 1), found((0, 1)))
    assert not _is_open((1, 0), found((0, 1)))
    assert not _is_open((2, 0), found((0, 1), (1, 2)))
    assert _is_open((0, 2), found((0, 1)))
    assert _is_open((1, 2), found((0, 1)))


def test_maps_get_more_where_categories_are_small():
    price = Price(whole_of(1.0, 1e-9))
    shares = [np.full(4, 0.25), np.full(40, 0.025), np.full(4, 0.25)]
    few, many = (map_share(price, shares, 9_000, pair) for pair in ((0, 2), (1, 2)))
    assert few < many <= MOST_MAP
    assert map_share(price, shares, 500, (1, 2)) == pytest.approx(MOST_MAP)


# What follows from a map


def test_a_map_is_the_largest_cell_and_what_ties_with_it():
    cells = np.array([[50, 1, -2], [3, 40, 0], [6, 5, 4]])
    allowed = allowed_by(cells, 2.0)
    assert allowed.tolist() == [[True, False, False], [False, True, False], [True, True, True]]


def test_what_no_line_leads_to_stays_somewhere():
    allowed = allowed_by(np.array([[50, 1, -2], [3, 40, 0]]), 2.0)
    assert allowed.any(axis=0).all()
    assert allowed[1, 2]


def test_tellers_come_first():
    maps = [NoisyTable((1, 2), np.eye(2).ravel(), 0.1), NoisyTable((0, 1), np.eye(2).ravel(), 0.1)]
    told = told_details(maps, (2, 2, 2))
    assert [(each.parent, each.feature) for each in told] == [(0, 1), (1, 2)]


def test_told_categories_are_written_over_and_given_ones_stay():
    told = told_details([NoisyTable((0, 1), np.array([9, 0, 0, 9]), 0.1)], (2, 2))
    shares = [np.array([0.5, 0.5])] * 2
    codes = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.uint32)
    tell(codes, told, shares, np.zeros)
    assert codes.tolist() == [[0, 0], [0, 0], [1, 1]]
    codes[:, 1] = 1
    tell(codes, told, shares, np.zeros, {1: 1})
    assert codes[:, 1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_pairs_that_tell_each_other_keep_their_error_small(epsilon):
    """Without maps merged levels are split apart from each other."""
    codes = coded_rows()
    errors = {}
    for name, steps in (("maps", Steps()), ("none", Steps(dependences=False))):
        released, fit, _ = released_of(epsilon, steps=steps)
        rows = take_rows(released, fit, 6000, RandomStream(4))
        errors[name] = pair_error(codes, rows, (0, 2))
        again = next(draw_rows(released, 6000, RandomStream(6), steps=steps))
        assert pair_error(codes, again, (0, 2)) < 1.5 * errors[name] + 0.02
    assert errors["maps"] < 0.1 + 0.5 * errors["none"]


def test_rows_keep_the_map_and_given_tellers_too():
    released, _, _ = released_of(5.0)
    told = told_details(released.maps, SIZES)
    for given in (None, {0: 7}):
        rows = next(draw_rows(released, 500, RandomStream(1), given=given))
        for each in told:
            assert each.allowed[rows[:, each.parent], rows[:, each.feature]].all()


# Files and replicates


def schema():
    features = [
        Feature(f"f{place}", categories=tuple(map(str, range(size))))
        for place, size in enumerate(SIZES)
    ]
    return Schema(tuple(features), reviewed=True)


def test_maps_are_stored_and_checked():
    released, _, _ = released_of()
    stored = stored_released(released)
    again = loaded_released(stored, schema())
    assert [t.features for t in again.maps] == [t.features for t in released.maps]
    rows = [next(draw_rows(each, 200, RandomStream(8))) for each in (released, again)]
    assert np.array_equal(*rows)
    circle = replace(
        released, maps=(released.maps[0], replace(released.maps[0], features=_turned(released)))
    )
    with pytest.raises(ModelError):
        loaded_released(StoredModel(arrays=stored_released(circle).arrays), schema())


def _turned(released):
    return released.maps[0].features[::-1]


def test_replicates_find_the_noise_of_the_other_tables():
    released, _, budget_filter = released_of()
    laws = Laws.of(released, budget_filter.events)
    assert len(laws.blocks) == len(released.blocks)
    assert len(laws.extra) == len(released.extra)
