"""Counts of values in bounded memory: the same, however many are held at once (R29)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.codec.finding_categories import counted_values
from pegsynth.schema import Feature
from pegsynth.schema.number_text import candidates, with_categories

TOWN = Feature("town", categories="private", missing=("", "NA"), not_applicable=("abroad",))


def counted(frames, features=(TOWN,), **how):
    """Count frames; return the counts by feature and text, and how many parts there were."""
    parts = list(counted_values(lambda: iter(frames), features, **how))
    found = {each.name: {} for each in features}
    for part in parts:
        assert part.texts.to_list() == sorted(part.texts)
        for text, count in zip(part.texts, part.counts.tolist(), strict=True):
            assert text not in found[part.name]
            found[part.name][text] = count
    return found, len(parts)


def test_values_are_counted_and_special_ones_are_not():
    values = ["a", "b", "a", None, "", " ", "NA", " NA ", "abroad", "(other)", "(missing)", "'=x"]
    found, parts = counted([pl.DataFrame({"town": values})])
    assert found["town"] == {"a": 2, "b": 1, "=x": 1}
    assert parts == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=4), max_size=60), st.sampled_from([200, 300, 1000, 10**6]))
def test_shares_change_nothing(values, most):
    frame = pl.DataFrame({"town": values}, schema={"town": pl.String})
    halves = [frame.head(len(values) // 2), frame.tail(len(values) - len(values) // 2)]
    wanted = Counter(candidates(frame["town"], TOWN).drop_nulls().to_list())
    found, _ = counted(halves, most_bytes=most)
    assert found["town"] == wanted


def test_many_values_of_several_features_come_in_parts():
    words = np.random.default_rng(1).integers(0, 3_000, (20_000, 2))
    frame = pl.DataFrame({"town": words[:, 0], "job": words[:, 1]})
    features = (TOWN, Feature("job", categories="private"))
    frames = [frame[at : at + 1_000] for at in range(0, 20_000, 1_000)]
    found, parts = counted(frames, features, most_bytes=40_000)
    assert parts > 4
    for name in ("town", "job"):
        assert found[name] == Counter(map(str, frame[name].to_list()))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text(max_size=5), min_size=1, max_size=20))
def test_what_is_found_has_a_code_of_its_own(values):
    series = pl.Series("town", values, dtype=pl.String)
    texts = candidates(series, TOWN)
    settled = with_categories(TOWN, texts.drop_nulls())
    codes = ColumnEncoder(settled).encode(series)
    for text, value, code in zip(texts, values, codes.tolist(), strict=True):
        if text is None:
            assert code >= settled.bin_count
        elif value in settled.categories:
            assert settled.categories[code] == value
        else:
            assert settled.categories[code] == text


@pytest.mark.parametrize(
    ("values", "dtype", "texts"),
    [
        ([1, 2, None], "int64", ["1", "2", None]),
        (["1.0", "2", " "], "int64", ["1", "2", None]),
        ([1.0, 2.5, float("nan")], "double", ["1", "2.5", None]),
        ([True, False], "", ["true", "false"]),
    ],
)
def test_typed_values_are_counted_by_their_text(values, dtype, texts):
    feature = Feature("x", categories="private", dtype=dtype)
    assert candidates(pl.Series("x", values), feature).to_list() == texts
