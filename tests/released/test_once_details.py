"""Details in released blocks: drawn given their parent, and always one that belongs to it (R11)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegsynth
from pegsynth.codec.levels import merged_along
from pegsynth.errors import ModelError, ParameterError
from pegsynth.methods.released._details import allowed_pairs, within_parent
from pegsynth.methods.released._stored import loaded_released, stored_released
from pegsynth.methods.released._values import Detail
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding

CHAPTERS, EACH, ROWS = 4, 12, 6_000
CODES = tuple(f"{chapter}{number:02}" for chapter in "ABCD" for number in range(EACH))
BY_LETTER = Recoding(hierarchy=Hierarchy(prefixes=(1,)), level=0)


def schema(**code):
    """Chapters, codes that belong to them, and something that depends on both."""
    told = {"categories": CODES, "parent": "chapter", "recoding": BY_LETTER, **code}
    return Schema(
        (
            Feature("code", **told),
            Feature("sex", categories=("f", "m")),
            Feature("chapter", categories=tuple("ABCD")),
        ),
        reviewed=True,
    )


def table(*, seed=3):
    """Return rows in which few codes are frequent."""
    words = np.random.default_rng(seed)
    chapter = words.choice(CHAPTERS, ROWS, p=[0.5, 0.3, 0.15, 0.05])
    shares = 1 / np.arange(1, EACH + 1) ** 1.2
    number = words.choice(EACH, ROWS, p=shares / shares.sum())
    sex = (words.random(ROWS) < 0.2 + 0.15 * chapter + 0.1 * (number % 2)).astype(int)
    return pl.DataFrame(
        {
            "code": [f"{'ABCD'[c]}{n:02}" for c, n in zip(chapter, number, strict=True)],
            "sex": ["fm"[s] for s in sex],
            "chapter": ["ABCD"[c] for c in chapter],
        }
    )


TABLE = table()
BUDGET = {"method": "pegs-once", "epsilon": 2.0, "delta": 1e-9}


def strays(frame):
    """Return how many rows have a code of another chapter."""
    return frame.filter(pl.col("code").str.slice(0, 1) != pl.col("chapter")).height


# Levels along a hierarchy


def test_small_categories_merge_with_those_of_the_same_parent_first():
    counts = np.array([50.0, 6, 5, 3, 3, 1, 40])
    fine = np.array([0, 0, 0, 1, 1, 2, 2])
    coarse = np.array([0, 0, 0, 0, 0, 1, 1])
    found = merged_along(counts, 10, [fine]).tolist()
    # Two of the first part are enough; the second part and the last code end up together.
    assert found[1] == found[2] != found[3]
    assert found[3] == found[4] == found[5]
    assert len({found[0], found[6], found[1], found[3]}) == 4
    assert len(set(merged_along(counts, 1_000, [fine, coarse]).tolist())) == 1
    apart = merged_along(counts, 1_000, [fine], coarse).tolist()
    assert apart == [0, 0, 0, 0, 0, 1, 1]


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=20),
    least=st.integers(1, 60),
    data=st.data(),
)
def test_levels_never_cross_their_parent_and_are_as_large_as_they_can(counts, least, data):
    size = len(counts)
    parts = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    above, within = np.array(data.draw(parts)), np.array(data.draw(parts))
    values = np.array(counts, dtype=float)
    levels = merged_along(values, least, [above], within)
    assert sorted(set(levels.tolist())) == list(range(levels.max() + 1))
    small_of = {}
    for level in range(levels.max() + 1):
        inside = set(within[levels == level].tolist())
        assert len(inside) == 1
        if values[levels == level].sum() < least:
            small_of.setdefault(inside.pop(), []).append(level)
    # Of one parent at most one level is too small: all that was left.
    assert all(len(found) == 1 for found in small_of.values())


# What goes together


def test_special_categories_go_with_everything():
    allowed = allowed_pairs(np.array([0, 1, 1, -1]), parents=3, listed=2)
    assert allowed.astype(int).tolist() == [[1, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]]
    first, second, third, special = within_parent(Detail(0, 1, allowed)).tolist()
    assert second == third
    assert len({first, second, special}) == 3
    merged = Detail(0, 1, allowed).on_levels(np.array([0, 1, 1, 2]))
    assert merged.allowed.astype(int).tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 1]]


@given(st.data())
def test_shares_of_a_detail_add_up_to_those_of_its_parent(data):
    belongs = np.array([0, 0, 1, 2, 2, 2])
    positive = st.floats(0.01, 1.0)
    parent = np.array([data.draw(positive) for _ in range(3)])
    own = np.array([data.draw(positive) for _ in range(6)])
    parent, own = parent / parent.sum(), own / own.sum()
    detail = Detail(0, 1, allowed_pairs(belongs, 3, 3))
    joint = detail.joint(parent, own)
    np.testing.assert_allclose(joint.sum(axis=1), parent)
    assert not joint[~detail.allowed].any()
    lines = detail.given(parent, own)
    np.testing.assert_allclose(lines.sum(axis=1), 1.0)
    # Inside a chapter the shares are those that were measured.
    for chapter in range(3):
        inside = belongs == chapter
        np.testing.assert_allclose(lines[chapter, inside], own[inside] / own[inside].sum())


# Releases


@pytest.fixture(scope="module")
def model():
    return pegsynth.fit(TABLE, schema(), rows=ROWS, **BUDGET)


def test_no_code_strays_from_its_chapter(model, tmp_path):
    assert strays(model.sample(4_000)) == 0
    assert strays(model.replicates(5, rows=3_000)) == 0
    model.save(tmp_path / "m.pegs")
    loaded = pegsynth.load(tmp_path / "m.pegs")
    assert strays(loaded.sample(4_000)) == 0
    given_code = loaded.sample(300, where={"code": "C01"})
    assert set(given_code["chapter"]) == {"C"}
    given_chapter = loaded.sample(300, where={"chapter": "D"})
    assert {code[0] for code in given_chapter["code"]} == {"D"}


def test_tables_with_noise_of_their_own_keep_codes_in_their_chapter():
    release = pegsynth.synthesize(TABLE, schema(), rows=1_000, datasets=3, **BUDGET)
    assert [strays(frame) for frame in release.frames] == [0, 0, 0]


def test_without_the_parent_codes_stray():
    free = schema(parent=None, recoding=None)
    release = pegsynth.synthesize(TABLE, free, rows=ROWS, **BUDGET)
    assert strays(release.frames[0]) > 0


def test_details_of_details_and_missing_values():
    """Codes of three lengths, the middle one with gaps."""
    rows = TABLE.with_columns(
        middle=pl.when(pl.col("sex") == "f").then(pl.col("code").str.slice(0, 2)),
    )
    middles = tuple(dict.fromkeys(code[:2] for code in CODES))
    columns = (
        Feature("code", categories=CODES, parent="middle", recoding=_prefix(2, 1)),
        Feature("sex", categories=("f", "m")),
        Feature("chapter", categories=tuple("ABCD")),
        Feature("middle", categories=middles, missing=("",), parent="chapter", recoding=_prefix(1)),
    )
    release = pegsynth.synthesize(rows, Schema(columns, reviewed=True), rows=3_000, **BUDGET)
    (frame,) = release.frames
    known = frame.filter(pl.col("middle").is_not_null())
    assert 0 < known.height < frame.height
    assert known.filter(pl.col("middle").str.slice(0, 1) != pl.col("chapter")).height == 0
    assert known.filter(pl.col("code").str.slice(0, 2) != pl.col("middle")).height == 0


def _prefix(*lengths):
    return Recoding(hierarchy=Hierarchy(prefixes=lengths), level=0)


def test_rules_and_details_hold_together():
    rule = Rule.of({1: [1], 0: list(range(6))})
    ruled = replace(schema(), rules=(rule,))
    release = pegsynth.synthesize(TABLE, ruled, rows=3_000, **BUDGET)
    (frame,) = release.frames
    assert strays(frame) == 0
    assert not frame.filter((pl.col("sex") == "m") & pl.col("code").is_in(CODES[:6])).height


def test_the_ledger_lists_what_belongs_to_what(model):
    codes = {each.code: each for each in model.ledger.assumptions}
    assert codes["public-parents"].parameters == {"features": ["code"]}
    assert "level 0 of a hierarchy" in codes["public-recodings"].text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recoding": None}, "by a public hierarchy"),
        ({"categories": CODES[:EACH]}, "nothing belongs to category number 2"),
    ],
)
def test_details_that_cannot_be_drawn_are_refused_before_data_is_read(changes, words):
    with pytest.raises(ParameterError, match=words):
        pegsynth.synthesize("no such file.csv", schema(**changes), rows=10, **BUDGET)


def test_a_model_whose_levels_cross_chapters_is_refused(model):
    book = schema()
    released = model.session.model.content.released
    assert loaded_released(stored_released(released), book).details
    crossing = np.zeros(len(CODES), dtype=np.int64)
    stored = stored_released(replace(released, levels=(crossing, *released.levels[1:])))
    with pytest.raises(ModelError):
        loaded_released(stored, book)
