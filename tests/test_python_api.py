"""The library as its callers see it: frames in, frames of the same kind out."""

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pegsynth
from listed_moments import draft_with_listed_moments
from pegsynth.codec.codec import encode

ROWS = 240
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 2, 29)]
COLUMNS = {
    "count": pl.Series([1, 2, 3, 4] * 60, dtype=pl.Int16),
    "grade": pl.Series(["low", "high", None] * 80, dtype=pl.Categorical),
    "flag": pl.Series([True, False] * 120),
    "day": pl.Series(DAYS * 120),
    "text": pl.Series(["a", "b, c", "=d"] * 80),
    "size": pl.Series([number / 7 for number in range(ROWS)], dtype=pl.Float64),
    "whole": pl.Series([number % 120 * 1000 for number in range(ROWS)], dtype=pl.Int64),
}
POLARS = pl.DataFrame(COLUMNS)
FRAMES = {"polars": POLARS, "pandas": POLARS.to_pandas(), "pyarrow": POLARS.to_arrow()}


@pytest.fixture(scope="module", params=FRAMES)
def frame(request):
    return FRAMES[request.param]


@pytest.fixture(scope="module")
def schema():
    return draft_with_listed_moments(POLARS)


def names_of(table):
    return list(getattr(table, "column_names", table.columns))


def test_every_public_name_resolves():
    for name in pegsynth.__all__:
        assert getattr(pegsynth, name) is not None
        assert name in dir(pegsynth)
    with pytest.raises(AttributeError, match="magic"):
        pegsynth.magic  # noqa: B018
    assert pegsynth.__version__


def test_every_error_is_one_of_ours():
    kinds = [getattr(pegsynth, name) for name in pegsynth.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, pegsynth.PegsynthError) for kind in kinds)


def test_the_same_kind_order_and_types(frame, schema):
    release = pegsynth.synthesize(frame, schema, rows=100, epsilon_per_row=1.0, datasets=2)
    assert len(release.frames) == 2
    for out in release.frames:
        assert type(out) is type(frame)
        assert names_of(out) == names_of(frame)
        assert len(out) == 100
        codes = encode(out, schema)
        assert (codes < np.array(schema.category_counts)).all()
    assert release.ledger.guarantee.kind == "pure"
    assert release.ledger.epsilon == pytest.approx(200, rel=1e-6)
    assert release.ledger.delta == 0
    assert "epsilon = 200" in release.ledger.statement()


def test_polars_types(schema):
    out = pegsynth.synthesize(POLARS, schema, rows=50, epsilon_per_row=1.0).frames[0]
    for name in ("count", "flag", "day", "text", "size", "whole"):
        assert out.schema[name] == POLARS.schema[name], name
    assert isinstance(out.schema["grade"], pl.Categorical | pl.Enum)
    assert set(out["day"]) <= set(DAYS)


def test_pandas_types(schema):
    """False alarms: a third of the grades are missing; none of 50 is with 2e-9."""
    frame = FRAMES["pandas"]
    out = pegsynth.synthesize(frame, schema, rows=50, epsilon_per_row=1.0).frames[0]
    for name in ("count", "flag", "text", "size", "whole", "day"):
        assert out[name].dtype == frame[name].dtype, name
    assert isinstance(out["grade"].dtype, pd.CategoricalDtype)
    assert set(out["grade"].cat.categories) == {"low", "high"}
    assert out["grade"].isna().any()


def test_pyarrow_types(schema):
    frame = FRAMES["pyarrow"]
    out = pegsynth.synthesize(frame, schema, rows=50, epsilon_per_row=1.0).frames[0]
    for name in ("count", "flag", "day", "text", "size", "whole"):
        assert out.schema.field(name).type == frame.schema.field(name).type, name
    assert pa.types.is_dictionary(out.schema.field("grade").type)


def test_categories_only_the_table_knows_never_come_out():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 9, categories=["x", "y", "SECRET"])})
    frame["b"] = ["p", "q"] * 9
    drafted = pegsynth.Schema.draft(frame, binning="equal-width", min_count=1)
    schema = pegsynth.Schema(drafted.columns, reviewed=True)
    out = pegsynth.synthesize(frame, schema, rows=30, epsilon_per_row=1.0).frames[0]
    assert set(out["a"].cat.categories) <= set(schema.features[0].categories)


def test_lazy_frames_and_files(schema, tmp_path):
    lazy = pegsynth.synthesize(POLARS.lazy(), schema, rows=20, epsilon_per_row=1.0).frames[0]
    assert isinstance(lazy, pl.DataFrame)
    POLARS.write_parquet(tmp_path / "t.parquet")
    schema.save(tmp_path / "schema.toml")
    for data in (tmp_path / "t.parquet", str(tmp_path / "t.parquet")):
        out = pegsynth.synthesize(data, tmp_path / "schema.toml", rows=20, epsilon_per_row=1.0)
        assert out.frames[0].columns == POLARS.columns


def test_the_table_of_the_caller_is_left_alone(schema):
    frame = FRAMES["pandas"]
    before = frame.copy(deep=True)
    pegsynth.synthesize(frame, schema, rows=20, epsilon_per_row=1.0)
    pd.testing.assert_frame_equal(frame, before)


def test_numpy_random_is_never_touched(schema):
    results = []
    for _ in range(2):
        np.random.seed(1)
        state = np.random.get_state()
        release = pegsynth.synthesize(POLARS, schema, rows=60, epsilon_per_row=1.0)
        assert all(np.array_equal(a, b) for a, b in zip(state, np.random.get_state(), strict=True))
        results.append(release.frames[0])
    assert not results[0].equals(results[1])


def test_seeds(schema):
    def run(seed, threads=None):
        release = pegsynth.synthesize(
            POLARS, schema, rows=60, epsilon_per_row=1.0, seed=seed, threads=threads
        )
        assert release.ledger.guarantee.kind == "none"
        return release.frames[0]

    assert run(5).equals(run(5, threads=1))
    assert not run(5).equals(run(6))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"rows": 0}, pegsynth.ParameterError),
        ({"rows": 1.5}, pegsynth.ParameterError),
        ({"rows": True}, pegsynth.ParameterError),
        ({"epsilon_per_row": 0.0}, pegsynth.BudgetError),
        ({"epsilon_per_row": float("nan")}, pegsynth.BudgetError),
        ({"epsilon": 1.0}, pegsynth.BudgetError),
        ({"epsilon_per_row": None}, pegsynth.BudgetError),
        ({"method": "magic"}, pegsynth.ParameterError),
        ({"datasets": 0}, pegsynth.ParameterError),
        ({"decode": "magic"}, pegsynth.ParameterError),
        ({"data": "none.csv"}, pegsynth.DataError),
        ({"data": {"a": [1]}}, pegsynth.DataError),
        ({"data": pd.DataFrame()}, pegsynth.DataError),
        ({"schema": "none.toml"}, pegsynth.SchemaError),
    ],
)
def test_what_is_refused(schema, change, kind):
    arguments = {"data": POLARS, "schema": schema, "rows": 10, "epsilon_per_row": 1.0}
    with pytest.raises(kind):
        pegsynth.synthesize(**(arguments | change))


def test_an_unreviewed_schema(schema):
    draft = pegsynth.Schema(schema.columns)
    with pytest.raises(pegsynth.SchemaError, match="reviewed"):
        pegsynth.synthesize(POLARS, draft, rows=10, epsilon_per_row=1.0)
    release = pegsynth.synthesize(
        POLARS, draft, rows=10, epsilon_per_row=1.0, accept_unreviewed_schema=True
    )
    assert release.ledger.guarantee.kind == "none"


def test_the_estimator(frame, schema):
    model = pegsynth.PeGS(method="pegs", epsilon_per_row=1.0).fit(frame, schema)
    out = model.sample(1000)
    assert type(out) is type(frame)
    assert len(out) == 1000
    assert names_of(out) == names_of(frame)
    assert encode(out, schema).shape == (1000, 7)


def test_built_in_data():
    data = pegsynth.datasets.discharge(500, seed=1)
    schema = pegsynth.datasets.discharge_schema()
    out = pegsynth.synthesize(data, schema, method="pegs-rs", epsilon_per_row=1.0, rows=200)
    assert out.frames[0].columns == data.columns
    assert out.frames[0].schema == data.schema
    assert not schema.breaks_a_rule(encode(out.frames[0], schema)).any()


def test_importing_is_cheap():
    heavy = ("numpy", "numba", "polars", "pyarrow", "pandas", "scipy", "typer", "opendp")
    program = f"import sys, pegsynth; sys.exit(str([m for m in {heavy!r} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stderr.strip() == "[]"


def test_a_seed_pool_that_is_the_table_itself_leaves_no_guarantee(tmp_path):
    """Whoever names the confidential file as public rows gets no claim (R10)."""
    from pegsynth import PeGS, synthesize
    from pegsynth.datasets import discharge, discharge_schema

    path = tmp_path / "stays.csv"
    discharge(50, seed=1).write_csv(path)
    other = tmp_path / "public.csv"
    discharge(50, seed=2).write_csv(other)
    book = discharge_schema()
    release = synthesize(str(path), book, rows=2, epsilon_per_row=1.0, seed_pool=str(path))
    assert release.ledger.guarantee.kind == "none"
    fitted = PeGS(epsilon_per_row=1.0, seed_pool=path).fit(str(path), book)
    assert fitted.ledger.guarantee.kind == "none"
    apart = synthesize(str(path), book, rows=2, epsilon_per_row=1.0, seed_pool=str(other))
    assert apart.ledger.guarantee.kind == "pure"


def test_the_estimator_takes_methods_without_a_budget():
    from pegsynth import PeGS
    from pegsynth.datasets import discharge, discharge_schema

    fitted = PeGS(method="bootstrap").fit(discharge(50, seed=1), discharge_schema())
    assert fitted.sample(7).height == 7
    assert fitted.ledger.guarantee.kind == "none"
