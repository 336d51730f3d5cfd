"""Policy after synthesis: functions of the synthetic rows, and said to be no protection (R31)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import ParameterError
from pegsynth.options import Publication
from pegsynth.publishing.policy import Policy
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect

SCHEMA = Schema(
    (
        Feature("age", kind="numeric", edges=(0.0, 50.0, 100.0), role="quasi-identifier"),
        Feature("zip", categories=("1", "2", "3"), role="quasi-identifier"),
        Feature("town", label_of="zip", value_labels={"1": "A", "2": "B", "3": "C"}),
        Feature("sex", categories=("f", "m")),
    ),
    reviewed=True,
)
ROWS = pl.DataFrame(
    {
        "age": [10.0, 20.0, 30.0, 60.0, 70.0, 80.0],
        "zip": ["1", "1", "1", "2", "2", "3"],
        "town": ["A", "A", "A", "B", "B", "C"],
        "sex": ["f", "m", "f", "m", "f", "m"],
    }
)


def published(policy, frames, folder):
    settled = policy.settled(SCHEMA)
    return pl.concat(settled.applied(iter(frames), SCHEMA, folder))


def test_rare_combinations_are_blanked_with_what_describes_them(tmp_path):
    found = published(Policy(3), [ROWS[:2], ROWS[2:]], tmp_path)
    assert found["age"].to_list() == [10.0, 20.0, 30.0, None, None, None]
    assert found["zip"].to_list() == ["1", "1", "1", None, None, None]
    assert found["town"].to_list() == ["A", "A", "A", None, None, None]
    assert found["sex"].equals(ROWS["sex"])
    assert list(tmp_path.iterdir()) == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 3)), min_size=1, max_size=30),
    k=st.integers(1, 5),
    cut=st.integers(0, 30),
)
def test_suppression_does_what_a_slow_twin_does(tmp_path_factory, rows, k, cut):
    frame = pl.DataFrame(
        {
            "age": [float(age) for age, _ in rows],
            "zip": [str(place) for _, place in rows],
            "town": ["ABC"[place - 1] for _, place in rows],
            "sex": ["f"] * len(rows),
        }
    )
    parts = [part for part in (frame[:cut], frame[cut:]) if part.height]
    found = published(Policy(k), parts, tmp_path_factory.mktemp("x"))
    keys = [(age >= 50, place) for age, place in rows]
    counts = Counter(keys)
    kept = [counts[key] >= k for key in keys]
    assert found["zip"].to_list() == [
        str(place) if keep else None for (_, place), keep in zip(rows, kept, strict=True)
    ]
    assert found["age"].is_null().to_list() == [not keep for keep in kept]


def test_numbers_are_rounded_first_and_exactly(tmp_path):
    found = published(
        Policy.of(Publication(round_to=["age=0.1"])),
        [ROWS.with_columns(age=pl.lit(0.32))],
        tmp_path,
    )
    assert set(found["age"]) == {0.3}
    found = published(Policy.of(Publication(round_to={"age": 25})), [ROWS], tmp_path)
    assert found["age"].to_list() == [0.0, 25.0, 25.0, 50.0, 75.0, 75.0]


def test_missing_codes_with_a_decimal_comma_are_not_rounded(tmp_path):
    pay = Feature(
        "pay", kind="numeric", edges=(0.0, 9.0), missing=("-9,5",), keep_missing_codes=True
    )
    schema = Schema((pay,), reviewed=True, dialect=Dialect(separator=";", decimal=","))
    policy = Policy.of(Publication(round_to={"pay": 2})).settled(schema)
    (found,) = policy.applied(iter([pl.DataFrame({"pay": [-9.5, 3.1]})]), schema, tmp_path)
    assert found["pay"].to_list() == [-9.5, 4.0]


def test_blanked_features_may_be_missing_in_the_codebook_and_codes_stay():
    book = Policy(2).settled(SCHEMA).codebook(SCHEMA)
    assert book["age"].missing == book["zip"].missing == ("",)
    assert book["sex"] == SCHEMA["sex"]
    assert book["zip"].labels[:3] == SCHEMA["zip"].labels


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "--k must be a whole number"),
        ({"k_features": "age"}, "requires --k"),
        ({"k": 2, "k_features": "height"}, "no feature 'height'"),
        ({"round_to": ["age"]}, "FEATURE=STEP"),
        ({"round_to": ["age=fine"]}, "FEATURE=STEP"),
        ({"round_to": ["sex=5"]}, "no numeric feature 'sex'"),
        ({"round_to": ["age=0"]}, "greater than 0"),
        ({"round_to": ["age=inf"]}, "greater than 0"),
    ],
)
def test_bad_policies_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        Policy.of(Publication(**arguments)).settled(SCHEMA)


def test_completed_versions_would_fill_what_is_blanked():
    with pytest.raises(ParameterError, match="--complete fills what --k blanks"):
        Policy(2).settled(SCHEMA, completed=True)
    assert not Policy().settled(SCHEMA, completed=True)


def test_missing_codes_that_are_kept_apart_stay_apart():
    zips = replace(SCHEMA["zip"], missing=("-9",), keep_missing_codes=True)
    schema = replace(SCHEMA, columns=(SCHEMA["age"], zips, *SCHEMA.columns[2:]))
    found = Policy(2).settled(schema).codebook(schema)["zip"]
    assert found.missing == ("-9", "")
    assert found.labels[: zips.category_count] == zips.labels


def test_without_quasi_identifiers_features_have_to_be_named():
    plain = Schema((replace(SCHEMA["sex"]),), reviewed=True)
    with pytest.raises(ParameterError, match="name some with --k-features"):
        Policy(2).settled(plain)


def test_a_release_says_that_it_is_policy(tmp_path):
    table = pl.concat([ROWS] * 20)
    table.write_csv(tmp_path / "t.csv")
    SCHEMA.save(tmp_path / "s.toml")
    options = ["--rows", 40, "--epsilon", 5, "--delta", "1e-9", "--method", "pegs-once"]
    policy = ["--k", 3, "--k-features", "age,zip", "--round", "age=5"]
    done(
        *("release", tmp_path / "t.csv", "--schema", tmp_path / "s.toml"),
        *("-o", tmp_path / "out", *options, *policy),
    )
    page = (tmp_path / "out" / "public" / "PRIVACY.md").read_text()
    assert "policy, and no further protection" in page
    assert "age, zip: blank" in page
    assert "Blank values" in (tmp_path / "out" / "public" / "HOW-TO-ANALYSE.md").read_text()
    release = pegsynth.Release.load(tmp_path / "out")
    (frame,) = release.frames
    known = frame.filter(pl.col("zip").is_not_null())
    assert all(age % 5 == 0 for age in known["age"])
    counts = Counter((age >= 50, place) for age, place in known.select("age", "zip").iter_rows())
    assert min(counts.values()) >= 3
    # What is promised is what is promised without it.
    assert release.ledger.guarantee.epsilon == pytest.approx(5, rel=0.01)


def test_a_bad_policy_writes_nothing_and_reads_nothing(tmp_path):
    SCHEMA.save(tmp_path / "s.toml")
    ran = pegs(
        *("release", tmp_path / "none.csv", "--schema", tmp_path / "s.toml", "--rows", 5),
        *("--epsilon", 1, "-o", tmp_path / "out", "--k", 2, "--k-features", "height"),
    )
    check_refused(ran, "height", "--k-features")
    assert not (tmp_path / "out").exists()
