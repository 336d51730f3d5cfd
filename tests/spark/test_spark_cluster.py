"""Whole runs on real clusters: the same rows as here, and nothing lost with a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pegsynth
import spark_clusters
from command import PEGS, SECRET, Outcome, check_refused, pegs, pegs_process
from lanes import long_form
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.errors import DataError, EngineError, OutputError, ParameterError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis
from pegsynth.spark import spark_session
from pegsynth.spark.cluster_files import file_source
from pegsynth.spark.counts import ClusterCounts
from small_release import small_schema, small_table

ROWS = 20_000
SEED = 7


@pytest.fixture(scope="module")
def discharges(tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "discharges.parquet"
    discharge(ROWS, seed=1).write_parquet(path, row_group_size=1_000)
    return path


def written(folder) -> pl.DataFrame:
    """The rows of a folder in the order of its files."""
    return pl.concat([pl.read_parquet(part) for part in sorted(Path(folder).glob("*.parquet"))])


def same(ours, theirs) -> bool:
    """Whether two values are equal bit for bit, arrays and whatever holds them."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, np.ndarray):
        alike = (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        return alike and ours.tobytes() == theirs.tobytes()
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if is_dataclass(ours):
        return all(same(getattr(ours, f.name), getattr(theirs, f.name)) for f in fields(ours))
    return ours == theirs


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".pegs")]


@pytest.mark.slow(seconds=130)
def test_a_local_cluster(discharges, tmp_path, monkeypatch):
    """One test, because a cluster takes long to start."""
    with spark_clusters.local_cluster() as spark:
        for check in (
            reads_files_in_the_workers,
            equals_the_local_engine,
            bounds_units_as_the_local_engine_does,
            releases_blocks_as_the_local_engine_does,
            measures_edges_and_finds_categories_as_the_local_engine_does,
            adds_up_declared_analyses_as_the_local_engine_does,
            draws_once_without_a_seed,
            refuses_bad_input,
            survives_a_lost_executor,
        ):
            folder = tmp_path / check.__name__
            folder.mkdir()
            with monkeypatch.context() as patch:
                check(spark, discharges, folder, patch)
            assert left_behind(folder) == []
        # Commands start a session of their own, in the same JVM.
        spark.stop()
        a_command_equals_the_local_one(discharges, tmp_path)
        a_command_that_fails_says_why(tmp_path)


def a_command_equals_the_local_one(discharges, folder):
    discharge_schema().save(folder / "schema.toml")
    release = ("--method", "pegs", "--epsilon-per-row", 1, "--rows", 2_000, "--seed", SEED)
    draws = ("synthesize", discharges, "--schema", folder / "schema.toml", *release)
    quiet(pegs(*draws, "-o", folder / "here.parquet"))
    quiet(pegs(*draws, "-o", folder / "there", "--engine", "spark", "--master", "local[2]"))
    assert written(folder / "there").equals(pl.read_parquet(folder / "here.parquet"))


def reads_files_in_the_workers(spark, discharges, folder, patch):
    """Only of a frame that is nothing but files, all alike."""
    schema = discharge_schema()
    frame = spark.read.parquet(str(discharges))
    first = schema.names[0]
    wider = type(frame.schema)([*frame.schema.fields]).add("more", "integer")
    parted = folder / "odd name, 100%" / "kind=a"
    parted.mkdir(parents=True)
    pl.read_parquet(discharges).write_parquet(parted / "x y.parquet")
    for wanted, each in (
        (True, frame),
        (True, spark.read.parquet(str(parted))),
        (False, spark.read.parquet(str(parted.parent))),
        (False, frame.where(f"{first} is not null")),
        (False, frame.limit(5)),
        (False, frame.alias("named")),
        (False, spark.read.text(str(discharges))),
        (False, frame.select(first)),
        (False, frame.union(frame)),
        (False, frame.withColumn(first, frame[first].substr(0, 1))),
        (False, spark.read.schema(wider).parquet(str(discharges))),
        (False, spark.createDataFrame(frame.limit(5).collect(), frame.schema)),
    ):
        assert (file_source(each, schema, 3) is not None) == wanted, each
    # A file of the table goes away between listing and reading.
    vanishing = folder / "vanishing"
    vanishing.mkdir()
    for name in "ab":
        pl.read_parquet(discharges).write_parquet(vanishing / f"{name}.parquet")
    read = spark.read.parquet(str(vanishing))
    with ClusterCounts(read, schema, None, source="t") as counts:
        (vanishing / "b.parquet").unlink()
        with pytest.raises(DataError, match=r"b\.parquet"):
            counts.pairs(schema.category_counts, order_rows=None)


def equals_the_local_engine(spark, discharges, folder, patch):
    schema = discharge_schema()
    options = {
        "pegs": {"epsilon": 100.0, "delta": 1e-6},
        "pegs-rs": {"epsilon_per_row": 1.0, "order": "data", "block_size": 7},
        "pegs-capped": {"epsilon": 50.0, "chains": 3, "urn": False},
    }
    # As its file is split, in many partitions, in one.
    frame = spark.read.parquet(str(discharges))
    shapes = {"pegs": frame, "pegs-rs": frame.repartition(5), "pegs-capped": frame.coalesce(1)}
    for method, budget in options.items():
        wanted = pegsynth.PeGS(method=method, rows=ROWS, seed=SEED, **budget)
        wanted.fit(discharges, schema)
        fitted = pegsynth.spark.fit(
            shapes[method], schema, method=method, rows=ROWS, seed=SEED, **budget
        )
        assert same(fitted.session.model.content.blocks, wanted.session.model.content.blocks), (
            method
        )
        for rows, partitions in ((9_000, 1), (11_000, 5)):
            target = folder / f"{method}-{partitions}"
            drawn = pegsynth.spark.sample(fitted, rows, spark, path=target, partitions=partitions)
            assert drawn.count() == rows
            assert written(target).equals(wanted.sample(rows)), method
        assert fitted.ledger == wanted.ledger
        assert fitted.rows_left == wanted.rows_left
        for ours, theirs in zip(
            fitted.session.spent.counters, wanted.session.spent.counters, strict=True
        ):
            assert np.array_equal(ours, theirs)


def bounds_units_as_the_local_engine_does(spark, discharges, folder, patch):
    table, path = small_table(3_000, units=400), folder / "units.parquet"
    table.write_parquet(path, row_group_size=100)
    schema = small_schema(rows_per_unit=2)
    options = {"method": "pegs", "rows": 500, "epsilon": 5.0, "seed": SEED}
    wanted = pegsynth.PeGS(**options).fit(path, schema)
    fitted = pegsynth.spark.fit(spark.read.parquet(str(path)), schema, **options)
    pegsynth.spark.sample(fitted, 500, spark, path=folder / "out")
    assert written(folder / "out").equals(wanted.sample(500))
    # Without a seed other rows are kept, and as many.
    unseeded = pegsynth.spark.fit(
        spark.read.parquet(str(path)), schema, **{**options, "seed": None}
    )
    kept = table.group_by("person").len().get_column("len").clip(upper_bound=2).sum()
    assert unseeded.session.model.content.blocks.blocks[0].cells()[2].sum() == kept
    empty = table.with_columns(person=pl.lit(" "))
    empty.write_parquet(folder / "nobody.parquet")
    with pytest.raises(DataError, match="unit column 'person': 3000 values are missing"):
        pegsynth.spark.fit(spark.read.parquet(str(folder / "nobody.parquet")), schema, **options)


def releases_blocks_as_the_local_engine_does(spark, discharges, folder, patch):
    schema = discharge_schema()
    names = ("typ", "sex", "race", "sev", "MDC")
    columns = tuple(each for each in schema.features if each.name in names)
    schema = Schema(columns, reviewed=True)
    path = folder / "five.parquet"
    pl.read_parquet(discharges, columns=list(schema.names)).write_parquet(path)
    options = {"method": "pegs-once", "rows": 1_000, "epsilon": 2.0, "delta": 1e-6, "seed": SEED}
    wanted = pegsynth.PeGS(**options).fit(path, schema)
    fitted = pegsynth.spark.fit(spark.read.parquet(str(path)), schema, **options)
    assert fitted.ledger == wanted.ledger
    assert same(fitted.session.model.content.released, wanted.session.model.content.released)
    assert fitted.sample(1_000).equals(wanted.sample(1_000))
    with pytest.raises(ParameterError, match="rows of pegs-once are drawn on one machine"):
        pegsynth.spark.sample(fitted, 5, spark, path=folder / "out")


def measures_edges_and_finds_categories_as_the_local_engine_does(spark, discharges, folder, patch):
    """Private edges and categories, with and without units: same codec, ledger and rows."""
    words = np.random.default_rng(3)
    towns = np.array([*"ABCDE", "Z\u00fcrich"])[words.integers(0, 6, 4_000)].astype(object)
    towns[:300] = [f"{SECRET} {number}" for number in range(300)]
    towns[300:340] = "NA"
    table = pl.DataFrame(
        {
            "person": [f"p {number % 1_700}" for number in range(4_000)],
            "town": list(towns),
            "code": words.integers(0, 9, 4_000).astype(float),
            "income": np.exp(words.normal(9, 1, 4_000)).astype(int),
        }
    )
    path = folder / "towns.parquet"
    table.write_parquet(path, row_group_size=500)
    frame = spark.read.parquet(str(path))
    town = Feature("town", categories="private", missing=("NA",))
    code = Feature("code", categories="private", dtype="int64")
    income = Feature("income", "numeric", edges="private", dtype="int64")
    person = Feature("person", role="identifier")
    options = {"rows": 300, "epsilon": 8.0, "delta": 1e-6, "seed": SEED}
    bounded = Schema((town, code, income), unit="person", rows_per_unit=2, reviewed=True)
    dropped = (replace(each, role="identifier") for each in (code, income))
    for schema, method in (
        (Schema((person, town, code, income), reviewed=True), "pegs-rs"),
        (bounded, "pegs-once"),
        (Schema((person, town, *dropped), reviewed=True), "pegs-rs"),
    ):
        wanted = pegsynth.PeGS(method=method, **options).fit(path, schema)
        fitted = pegsynth.spark.fit(frame, schema, method=method, **options)
        ours, theirs = wanted.session.model, fitted.session.model
        assert theirs.schema == ours.schema
        assert theirs.schema["town"].categories == (*"ABCDE", "Z\u00fcrich")
        assert fitted.ledger == wanted.ledger
        assert same([*theirs.shapes.items()], [*ours.shapes.items()])
        assert fitted.sample(300).equals(wanted.sample(300))
    # Without a seed, and on a frame that comes in another order every time.
    unseeded = {**options, "method": "pegs-rs", "seed": None}
    found = pegsynth.spark.fit(frame.repartition(3), bounded, **unseeded)
    assert found.session.model.schema["town"].categories == (*"ABCDE", "Z\u00fcrich")


def adds_up_declared_analyses_as_the_local_engine_does(spark, discharges, folder, patch):
    """Scores of both kinds and products, with private edges and units: same sums, ledger, rows."""
    words = np.random.default_rng(4)
    age = words.integers(18, 70, 3_000)
    table = pl.DataFrame(
        {
            "person": [f"p {number % 1_300}" for number in range(3_000)],
            "job": np.array(["a", "b"])[words.integers(0, 2, 3_000)],
            "age": age,
            "pay": np.maximum(age * 0.5 + words.gamma(2.0, 9.0, 3_000), 0).astype(int),
        }
    )
    path = folder / "people.parquet"
    table.write_parquet(path, row_group_size=500)
    schema = Schema(
        (
            Feature("person", role="identifier"),
            Feature("job", categories=("a", "b")),
            Feature("age", "numeric", edges=(18.0, 30.0, 45.0, 70.0), dtype="int64"),
            Feature("pay", "numeric", edges="private", dtype="int64"),
        ),
        reviewed=True,
        analyses=(
            Analysis("pay ~ age + C(job)", share=0.1),
            Analysis("I(pay > 30) ~ age", "binomial", 0.1),
            Analysis("pay ~ age", "poisson", 0.1),
        ),
    )
    options = {"method": "pegs-once", "rows": 200, "epsilon": 9.0, "delta": 1e-6, "seed": SEED}
    for each in (schema, replace(schema, unit="person", rows_per_unit=2)):
        wanted = pegsynth.PeGS(**options).fit(path, each)
        fitted = pegsynth.spark.fit(spark.read.parquet(str(path)), each, **options)
        assert fitted.ledger == wanted.ledger
        ours, theirs = (model.session.model.content.released for model in (wanted, fitted))
        assert len(ours.sums) == 3
        assert same(theirs, ours)
        assert fitted.sample(200).equals(wanted.sample(200))


def draws_once_without_a_seed(spark, discharges, folder, patch):
    fitted = pegsynth.spark.fit(
        spark.read.parquet(str(discharges)),
        discharge_schema(),
        method="pegs",
        rows=ROWS,
        epsilon=100.0,
    )
    drawn = pegsynth.spark.sample(fitted, 9_000, spark, path=folder / "first")
    assert drawn.toArrow().equals(drawn.toArrow())
    assert all(name.startswith(f"file://{folder}/first/") for name in drawn.inputFiles())
    pegsynth.spark.sample(fitted, 9_000, spark, path=folder / "second")
    first, second = written(folder / "first"), written(folder / "second")
    assert not first.equals(second)
    assert fitted.ledger.guarantee.kind == "pure"
    assert fitted.rows_left == ROWS - 18_000
    assert first.columns == list(discharge_schema().names)


def refuses_bad_input(spark, discharges, folder, patch):
    schema = small_schema()
    options = {"rows": 5, "epsilon": 5.0}
    table = small_table(50)
    wrong = table.with_columns(a=pl.lit(SECRET))
    frames = {
        "column 'a': 50 values are not in the schema": wrong,
        "column 'c' of the schema is not in the table": table.drop("c"),
        "column 'd' is not in the schema": table.with_columns(d=pl.lit(1)),
        "column 'b' holds list values": table.with_columns(b=pl.lit([1, 2])),
    }
    for number, (message, frame) in enumerate(frames.items()):
        path = folder / f"{number}.parquet"
        frame.write_parquet(path)
        with pytest.raises(DataError, match=message) as refused:
            pegsynth.spark.fit(spark.read.parquet(str(path)), schema, **options)
        assert SECRET not in str(refused.value)
    for message, part in broken_parts(folder).items():
        with pytest.raises(DataError, match=message):
            pegsynth.spark.fit(spark.read.parquet(str(part.parent)), schema, **options)
    # That there is no row is nothing to refuse a table for: one row more would tell.
    table.clear().write_parquet(folder / "bare.parquet")
    bare = pegsynth.spark.fit(spark.read.parquet(str(folder / "bare.parquet")), schema, **options)
    assert bare.ledger.guarantee.kind == "pure"
    table.write_parquet(folder / "good.parquet")
    frame = spark.read.parquet(str(folder / "good.parquet"))
    with pytest.raises(ParameterError, match="leave it out on Spark"):
        pegsynth.spark.fit(frame, schema, method="pegs-capped", urn=True, **options)
    fitted = pegsynth.spark.fit(frame, schema, method="pegs", **options)
    (folder / "taken").mkdir()
    with pytest.raises(OutputError, match="it exists already"):
        pegsynth.spark.sample(fitted, 5, spark, path=folder / "taken")
    with pytest.raises(OutputError, match="Spark may not write there"):
        pegsynth.spark.sample(fitted, 5, spark, path="/proc/nowhere/out")
    assert fitted.rows_left == 5
    patch.setattr("pegsynth.spark.sampling.mapped", partial(failing, folder))
    with pytest.raises(EngineError, match="Spark gave up while drawing rows"):
        pegsynth.spark.sample(fitted, 5, spark, path=folder / "failed")
    assert not (folder / "failed").exists()
    assert fitted.rows_left == 0


def broken_parts(folder):
    """Tables of three files, the second of which cannot be read; and what is said of it."""
    table = small_table(50)
    parts = [folder / name / "2.parquet" for name in ("unreadable", "drifted")]
    for part in parts:
        part.parent.mkdir()
        for number in (1, 2, 3):
            table.write_parquet(part.with_name(f"{number}.parquet"))
    whole = parts[0].read_bytes()
    # The end of a Parquet file says what is in it, and is all that listing a table reads.
    parts[0].write_bytes(bytes(len(whole) // 2) + whole[len(whole) // 2 :])
    table.with_columns(b=pl.lit(1.5)).write_parquet(parts[1])
    return {
        f"{parts[0]}: the file is truncated": parts[0],
        f"{parts[1]}: column 'b' has another type": parts[1],
    }


def failing(folder, frame, task, schema):
    def run(batches):
        yield from task(batches)
        raise RuntimeError("a disk is full")

    return spark_session.mapped(frame, run, schema)


def killing(marker, generations, frame, task, schema):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(spark_clusters)
    mortal = spark_clusters.dying(task, str(marker), generations)
    return spark_session.mapped(frame, mortal, schema)


def survives_a_lost_executor(spark, discharges, folder, patch, generations=1):
    schema = discharge_schema()
    options = {"method": "pegs-rs", "rows": ROWS, "epsilon": 100.0, "seed": SEED}
    wanted = pegsynth.PeGS(**options).fit(discharges, schema)
    patch.setattr("pegsynth.spark.counts.mapped", partial(killing, folder / "one", generations))
    fitted = pegsynth.spark.fit(spark.read.parquet(str(discharges)), schema, **options)
    patch.setattr("pegsynth.spark.sampling.mapped", partial(killing, folder / "two", 1))
    pegsynth.spark.sample(fitted, ROWS, spark, path=folder / "out", partitions=4)
    assert (folder / "one").exists()
    assert (folder / "two").exists()
    assert written(folder / "out").equals(wanted.sample(ROWS))
    if generations > 1:
        return
    # Without a seed an attempt that is lost leaves no row behind.
    unseeded = pegsynth.spark.fit(
        spark.read.parquet(str(discharges)), schema, method="pegs-capped", rows=ROWS, epsilon=50.0
    )
    patch.setattr("pegsynth.spark.sampling.mapped", partial(killing, folder / "three", 1))
    pegsynth.spark.sample(unseeded, ROWS, spark, path=folder / "capped", partitions=4)
    assert (folder / "three").exists()
    assert written(folder / "capped").height == ROWS


@long_form
@pytest.mark.slow(seconds=140)
def test_a_standalone_cluster(discharges, tmp_path, monkeypatch):
    """A master and two workers; one of them dies with all it runs."""
    with spark_clusters.standalone() as cluster:
        a_signal_while_counting_ends_everything(cluster, discharges, tmp_path)
        with spark_clusters.one_java(cluster):
            commands_equal_the_local_ones(cluster, discharges, tmp_path)
            a_command_that_fails_says_why(tmp_path)
            with spark_clusters.session_on(cluster) as spark:
                survives_a_lost_executor(spark, discharges, tmp_path, monkeypatch, generations=2)
    assert left_behind(tmp_path) == []


def commands_equal_the_local_ones(cluster, discharges, folder):
    schema = folder / "schema.toml"
    discharge_schema().save(schema)
    here, there = folder / "here", folder / "there"
    here.mkdir()
    there.mkdir()
    engine = ("--engine", "spark", "--master", cluster.address)
    table = (discharges, "--schema", schema)
    seeded = ("--seed", SEED)
    release = ("--method", "pegs", "--epsilon-per-row", 1, *seeded)
    draws = ("synthesize", *table, "--rows", 9_000, *release)
    quiet(pegs(*draws, "-o", here / "s.parquet"))
    quiet(pegs(*draws, "-o", there / "s.parquet", *engine))
    fit = ("fit", *table, "--method", "pegs-capped", "--epsilon", 50, "--rows", ROWS, *seeded)
    quiet(pegs(*fit, "-o", here / "m.pegs"))
    # As people start it: a process of its own, and what it prints to the last byte.
    quiet(pegs_process(*fit, "-o", there / "m.pegs", *engine, env=dict(os.environ)))
    for place, where in ((here, ()), (there, engine)):
        model = place / "m.pegs"
        draw = ("sample", model, *seeded)
        quiet(pegs(*draw, "--rows", 6_000, "-o", place / "1.parquet", *where))
        # The second table shows that the visits of the first were written down.
        quiet(pegs(*draw, "--rows", 5_000, "-o", place / "2.parquet"))
    assert written(there / "s.parquet").equals(pl.read_parquet(here / "s.parquet"))
    assert written(there / "1.parquet").equals(pl.read_parquet(here / "1.parquet"))
    assert pl.read_parquet(there / "2.parquet").equals(pl.read_parquet(here / "2.parquet"))
    for name in ("s", "1", "2"):
        ledgers = [
            json.loads((place / f"{name}.parquet.privacy.json").read_text())
            for place in (here, there)
        ]
        assert ledgers[0] == ledgers[1]
    assert left_behind(there) == []


def a_command_that_fails_says_why(folder):
    """One message, no output, nothing of Java's and no value of the data."""
    folder = folder / "failing"
    folder.mkdir()
    small_schema().save(folder / "schema.toml")
    secret = folder / "unknown.parquet"
    small_table(50).with_columns(a=pl.lit(SECRET)).write_parquet(secret)
    before = sorted(folder.iterdir())
    done = pegs(
        *("synthesize", secret, "--schema", folder / "schema.toml", "-o", folder / "out.parquet"),
        *("--method", "pegs", "--rows", 5, "--epsilon", 5, "--engine", "spark"),
        *("--master", "local[1]"),
    )
    check_refused(done, "column 'a': 50 values are not")
    assert SECRET not in done.err
    assert sorted(folder.iterdir()) == before


def a_signal_while_counting_ends_everything(cluster, discharges, folder):
    """The jobs, the JVM and its workers; nothing is left, and one message says so."""
    folder = folder / "stopped"
    folder.mkdir()
    discharge_schema().save(folder / "schema.toml")
    before = sorted(folder.iterdir())
    run = subprocess.Popen(
        [
            *(*PEGS, "fit", str(discharges), "--schema", str(folder / "schema.toml")),
            *("--method", "pegs-once", "--rows", "500", "--epsilon", "1", "--delta", "1e-6"),
            *("-o", str(folder / "m.pegs"), "--engine", "spark", "--master", "local[1]"),
        ],
        env={**os.environ, **cluster.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while run.poll() is None and not any(
        "pyspark.daemon" in name for name in offspring(run.pid).values()
    ):
        time.sleep(0.05)
    time.sleep(1)
    children = offspring(run.pid)
    run.send_signal(signal.SIGTERM)
    output, errors = run.communicate(timeout=300)
    assert run.returncode == 128 + signal.SIGTERM
    assert (output, errors) == ("", "pegs: stopped; every output is as it was, or whole\n")
    assert sorted(folder.iterdir()) == before
    assert len(children) >= 2
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{child}/cmdline").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def offspring(process: int) -> dict[int, str]:
    """Processes that a process has started, and those that they have, with their commands."""
    found = {}
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    waiting = [process]
    while waiting:
        parent = waiting.pop()
        for child in (each for each, of in parents.items() if of == parent):
            waiting.append(child)
            with suppress(OSError):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    return found


def quiet(done: Outcome) -> None:
    assert (done.code, done.out) == (0, ""), done.err
    assert "java" not in done.err.lower()
