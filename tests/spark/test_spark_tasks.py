"""What runs on the workers, without a cluster: partitions cut in many ways, one after the other."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.api.fitted import PeGS
from pegsynth.codec.code_table import CodeTable, kept_rows
from pegsynth.codec.codec import Decoder, encode
from pegsynth.codec.finding_categories import counted_values
from pegsynth.codec.measured_rows import GridCounter
from pegsynth.codec.pair_counts import PairCounter
from pegsynth.errors import DataError, EngineError, ParameterError, SchemaError
from pegsynth.methods.gibbs.blocks import BlockCounter
from pegsynth.methods.gibbs.chains import CHUNK_ROWS
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.released._values import MergedRows, TableCounter
from pegsynth.pipeline.drawn_tables import Decoding, decoded, decoder_of
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.spark import (
    arrow_batches,
    codes,
    counts,
    sampling,
    spark_session,
)
from pegsynth.spark import (
    cluster_files as parquet_files,
)
from pegsynth.spark import (
    cluster_fit as candidate_texts,
)
from pegsynth.spark import (
    codes as unit_words,
)
from pegsynth.spark import (
    spark_session as stopping,
)
from pegsynth.spark.codes import UnitWords
from pegsynth.tables.table_input import open_table
from small_release import small_schema, small_session, small_table


def batches(table, size=1 << 20):
    """A frame as the batches that Spark hands out."""
    arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
    return arrow.combine_chunks().to_batches(max_chunksize=size)


def partitions(table, cuts):
    """A frame cut at some rows, in order; parts may be empty."""
    edges = [0, *sorted(cuts), table.height]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


@pytest.fixture
def on_partition(monkeypatch):
    """Let a task believe that it works on some partition."""

    def run(task, number, given):
        for module in (unit_words, counts, sampling):
            monkeypatch.setattr(module, "partition_number", lambda: number)
        return list(task(given))

    return run


def schema_of(*sizes):
    features = [
        Feature(f"f{i}", categories=tuple(map(str, range(size)))) for i, size in enumerate(sizes)
    ]
    return Schema(tuple(features), reviewed=True)


def table_of(schema, rows, seed=1):
    words = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            feature.name: [str(code) for code in words.integers(0, feature.category_count, rows)]
            for feature in schema.features
        }
    )


# Counting


COUNTERS = {
    "grids": lambda schema: partial(GridCounter, schema),
    "pairs": lambda schema: partial(PairCounter, schema.category_counts),
    "blocks": lambda schema: partial(BlockCounter, spec_of(schema)),
    "listed blocks": lambda schema: partial(BlockCounter, spec_of(schema), most_dense_cells=10),
    "tables": lambda schema: partial(
        TableCounter,
        [np.arange(size) // 2 for size in schema.category_counts],
        list(combinations(range(len(schema.features)), 2)),
    ),
}


def spec_of(schema):
    return HashSpec(schema.names, schema.category_counts, public_heads(schema, 2))


def digest_of(task, table, cuts, on_partition):
    seen = codes.RowsSeen(3)
    for number, part in enumerate(partitions(table, cuts)):
        for batch in on_partition(task, number, batches(part, 40)):
            for cell in batch.column("seen").drop_null().to_pylist():
                seen.absorb(np.frombuffer(cell, dtype=np.int64))
    return seen.rows, seen.digest


def test_a_pass_is_told_by_its_rows_and_not_by_their_order(on_partition):
    schema = schema_of(3, 4, 2)
    table = table_of(schema, 300)
    task = codes.EncodeRows(schema)
    first = digest_of(task, table, (), on_partition)
    for cuts in ((7,), (3, 50, 51)):
        shuffled = table.sample(fraction=1, shuffle=True, seed=cuts[0])
        assert digest_of(task, shuffled, cuts, on_partition) == first
    value = "1" if table["f2"][5] == "0" else "0"
    other = table.with_columns(f2=table["f2"].scatter(5, value))
    assert digest_of(task, other, (), on_partition) != first
    swapped = table.with_columns(f0=table["f0"].reverse())
    assert digest_of(task, swapped, (), on_partition) != first


def test_a_pass_is_told_by_its_units(on_partition):
    schema = Schema(schema_of(3, 4, 2).columns, unit="who", rows_per_unit=1)
    table = table_of(schema, 300).select(pl.int_range(300).cast(pl.String).alias("who"), pl.all())
    task = codes.EncodeUnits(schema, tuple(table.columns), UnitWords(1))
    first = digest_of(task, table, (), on_partition)
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    assert digest_of(task, shuffled, (40,), on_partition) == first
    merged = table.with_columns(who=pl.lit("0"))
    assert digest_of(task, merged, (), on_partition) != first


def test_other_rows_in_a_second_pass_are_refused():
    table = counts.ClusterCounts.__new__(counts.ClusterCounts)
    table._first, table._source, table._schema = None, "the DataFrame", schema_of(2)
    table._encoder = codes.encoder_of(table._schema)
    seen = codes.RowsSeen(1, rows=5, digest=7)
    table._check(seen)
    table._check(seen)
    for other in (codes.RowsSeen(1, rows=5, digest=8), codes.RowsSeen(1, rows=6, digest=7)):
        with pytest.raises(DataError, match=r"came differently the second time.*Parquet first"):
            table._check(other)


@pytest.mark.parametrize("kind", COUNTERS)
@pytest.mark.parametrize("cuts", [(), (0, 0, 7), (3, 50, 51, 200, 299), tuple(range(0, 300, 9))])
def test_counts_of_parts_add_up_along_the_tree(kind, cuts, on_partition, monkeypatch):
    monkeypatch.setattr(arrow_batches, "PIECE_BYTES", 64)
    schema = schema_of(3, 4, 2, 5)
    table, new = table_of(schema, 300), COUNTERS[kind](schema)
    parts = []
    for number, part in enumerate(partitions(table, cuts)):
        packed = on_partition(codes.EncodeRows(schema), number, batches(part, 40))
        parts.append(on_partition(counts.CountPartition(schema, new), number, packed))
    while len(parts) > 1:
        groups = [parts[start : start + 3] for start in range(0, len(parts), 3)]
        parts = [
            on_partition(counts.CountPartition(schema, new, summed=True), number, mixed(group))
            for number, group in enumerate(groups)
        ]
    (arrays,) = counts.gathered(parts[0])
    seen = codes.RowsSeen(4)
    seen.absorb(arrays["seen"])
    assert (seen.rows, seen.blank, seen.faults.sum()) == (300, 0, 0)
    with new() as wanted:
        wanted.add(encode(table, schema))
        for name, array in wanted.arrays().items():
            assert np.array_equal(arrays[name], array), name


@pytest.mark.parametrize("step", [1, 2, 5, 40])
def test_files_read_by_workers_count_as_the_local_engine_counts(step, tmp_path, on_partition):
    schema = schema_of(3, 4, 2, 5)
    tables = [table_of(schema, 300, seed) for seed in (1, 2)]
    paths = [tmp_path / f"{number}.parquet" for number in range(2)]
    for table, path in zip(tables, paths, strict=True):
        table.write_parquet(path, row_group_size=40)
    parts = [
        parquet_files.Part(path, slice(first, None, step))
        for path in paths
        for first in range(step)
    ]
    task = parquet_files.EncodeFiles(schema, parts)
    new = COUNTERS["pairs"](schema)
    sums = []
    for number in range(len(parts)):
        asked = [arrow_batches.record_batch(id=pa.array([number], pa.int64()))]
        packed = on_partition(task, number, asked)
        sums += on_partition(counts.CountPartition(schema, new), number, packed)
    (arrays,) = counts.gathered(
        on_partition(counts.CountPartition(schema, new, summed=True), 0, mixed([sums]))
    )
    with new() as wanted:
        wanted.add(encode(pl.concat(tables), schema))
        for name, array in wanted.arrays().items():
            assert np.array_equal(arrays[name], array), name
    # A part left out, or read twice, is noticed by the same comparison.
    assert arrays["seen"][0] == 600


def test_files_must_be_alike_to_be_read_by_workers(tmp_path):
    types = {"a": "string", "b": "bigint"}

    def alike(frame, features=("a", "b")):
        path = tmp_path / "table.parquet"
        frame.write_parquet(path)
        return parquet_files._all_alike([path], types, features)

    texts, numbers = pl.Series("a", ["x"]), pl.Series("b", [1])
    assert alike(pl.DataFrame([texts, numbers]))
    assert alike(pl.DataFrame([texts, numbers.cast(pl.Int32)]), ["a"])
    assert not alike(pl.DataFrame([texts, numbers.cast(pl.Int32)]))
    assert not alike(pl.DataFrame([texts, numbers.cast(pl.UInt64)]))
    assert not alike(pl.DataFrame([texts.cast(pl.Categorical), numbers]))
    assert not alike(pl.DataFrame([texts]), ["a"])
    assert not alike(pl.DataFrame([texts, numbers, pl.Series("c", [1])]))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert not parquet_files._all_alike([tmp_path / "broken.parquet"], types, ["a"])


def mixed(group):
    """Pieces of several partitions in any order."""
    pieces = [piece for part in group for piece in part]
    return [pieces[i] for i in np.random.default_rng(3).permutation(len(pieces))]


def test_a_partition_without_rows_hands_on_nothing(on_partition):
    schema = schema_of(2, 2)
    assert on_partition(codes.EncodeRows(schema), 0, []) == []
    new = COUNTERS["pairs"](schema)
    assert on_partition(counts.CountPartition(schema, new), 0, []) == []
    assert on_partition(counts.CountPartition(schema, new, summed=True), 0, []) == []


def test_values_without_a_code_are_counted_and_not_kept(on_partition):
    schema = schema_of(2, 2)
    table = pl.DataFrame({"f0": ["0", "secret", None, "1"], "f1": ["0", "0", "secret", "1"]})
    seen = codes.RowsSeen(2)
    for number, part in enumerate(partitions(table, (2,))):
        packed = on_partition(codes.EncodeRows(schema), number, batches(part))
        assert b"secret" not in pickle.dumps(packed)
        list(codes.unpacked(packed, schema, seen))
    assert seen.faults.tolist() == [[1, 1], [1, 0]]


def test_an_error_about_values_does_not_quote_them():
    with pytest.raises(DataError) as refused, codes.plain_values():
        pl.Series(["secret"]).cast(pl.Int64)
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


@given(st.integers(0, 200), st.integers(1, 9))
def test_rows_of_bytes_and_back(rows, columns):
    matrix = np.random.default_rng(rows).integers(0, 9, (rows, columns)).astype(np.uint16)
    cells = arrow_batches.binary_rows(matrix)
    assert np.array_equal(arrow_batches.matrix_of(cells, columns, matrix.dtype), matrix)


# Units


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("cuts", [(), (100, 101, 350)])
def test_units_keep_the_rows_that_the_local_engine_keeps(k, cuts, on_partition, monkeypatch):
    monkeypatch.setattr(codes, "_MOST_HELD", 50)
    schema, table = small_schema(rows_per_unit=k), small_table(400, units=60)
    wanted = np.concatenate(list(CodeTable(open_table(table), schema, RandomStream(5)).batches()))
    stream = RandomStream(5)
    number, names = stream.substreams(1), ("person", *schema.names)
    parts = partitions(table.select(names), cuts)
    first = dict(enumerate(np.cumsum([0, *(part.height for part in parts)]).tolist()))
    words = UnitWords(number, stream.shared_key, first)
    task = codes.EncodeUnits(schema, names, words)
    rows = [
        batch for i, part in enumerate(parts) for batch in on_partition(task, i, batches(part, 30))
    ]
    seen = codes.RowsSeen(3)
    kept = list(codes.unpacked(gathered_by_unit(rows, schema), schema, seen))
    assert sorted(map(tuple, np.concatenate(kept))) == sorted(map(tuple, wanted))
    assert (seen.rows, seen.blank) == (400, 0)


def gathered_by_unit(rows, schema):
    """What two partitions keep, after a shuffle by unit."""
    whole = pa.Table.from_batches(rows)
    even = [unit is not None and int(unit[2:]) % 2 == 0 for unit in whole["unit"].to_pylist()]
    task = codes.BoundUnits(schema)
    for half in (pa.array(even), pa.array([not each for each in even])):
        yield from task(whole.filter(half).to_batches(max_chunksize=25))


def test_without_a_seed_units_have_other_words_every_time(on_partition):
    schema, table = small_schema(rows_per_unit=1), small_table(50, units=3)
    task = codes.EncodeUnits(schema, ("person", *schema.names), UnitWords(1 << 63))
    chosen = table.select("person", *schema.names)
    first, second = (on_partition(task, 0, batches(chosen))[0] for _ in range(2))
    assert not first.column("word").equals(second.column("word"))


# Texts that may become categories


TOWN = Feature("town", categories="private", missing=("NA",))
CODE = Feature("code", categories="private", dtype="int64")


def texts_table(rows=400, units=60):
    words = np.random.default_rng(2)
    towns = [*"abc", "NA", " ", None, "Z\u00fcrich", "z", "1.0"]
    return pl.DataFrame(
        {
            "person": [f"p {words.integers(units)}" for _ in range(rows)],
            "town": [towns[number] for number in words.integers(0, len(towns), rows)],
            "code": words.integers(0, 5, rows).astype(float),
        }
    )


def summed(batches_of_counts, features):
    """What Spark adds up and puts in order, as parts."""
    whole = pl.concat([pl.from_arrow(batch) for batch in batches_of_counts])
    order = ["feature", "value"]
    ordered = whole.group_by(order).agg(pl.col("count").sum()).sort(order)
    cells = candidate_texts.pack(arrow_batches.spark_batches(ordered))
    packed = (cell for batch in cells for cell in batch.column(0).to_pylist())
    parts = candidate_texts._parts(packed, features, 1 << 20)
    return {part.name: (part.texts.to_list(), part.counts.tolist()) for part in parts}


def counted_here(table, features):
    parts = counted_values(lambda: iter([table]), features)
    return {part.name: (part.texts.to_list(), part.counts.tolist()) for part in parts}


@pytest.mark.parametrize("cuts", [(), (0, 7, 7), tuple(range(0, 400, 9))])
def test_texts_count_as_the_local_engine_counts_them(cuts, on_partition, monkeypatch):
    monkeypatch.setattr(candidate_texts, "_MOST_HELD", 20)
    features = (TOWN, CODE)
    table = texts_table().select("town", "code")
    task = candidate_texts.CountTexts(features)
    found = [
        batch
        for number, part in enumerate(partitions(table, cuts))
        for batch in on_partition(task, number, batches(part, 30))
    ]
    assert summed(found, features) == counted_here(table, features)


def test_parts_are_of_bounded_size_and_in_text_order():
    values = pl.DataFrame({"town": [f"town {number:04}" for number in range(900)]})
    (counted,) = candidate_texts.CountTexts((TOWN,))(batches(values))
    ordered = pl.from_arrow(counted).sort("value")
    cells = candidate_texts.pack(batches(ordered, 100))
    packed = [cell for batch in cells for cell in batch.column(0).to_pylist()]
    parts = list(candidate_texts._parts(packed, (TOWN,), 3_000))
    assert 3 < len(parts) < 10
    assert pl.concat([part.texts for part in parts]).equals(values["town"], check_names=False)


def kept_texts(table, words, k, cuts, on_partition):
    """Texts of the bounded rows, after a shuffle by unit into two partitions."""
    features = (TOWN, CODE)
    task = candidate_texts.UnitTexts(features, words)
    rows = [
        batch
        for number, part in enumerate(partitions(table, cuts))
        for batch in on_partition(task, number, batches(part, 30))
    ]
    whole = pl.from_arrow(pa.Table.from_batches(rows))
    even = whole["unit"].str.slice(2).cast(int) % 2 == 0
    bound = candidate_texts.CountTexts(features, k)
    found = [batch for half in (even, ~even) for batch in bound(batches(whole.filter(half), 25))]
    return summed(found, features)


@pytest.mark.parametrize("k", [1, 3])
def test_texts_of_units_are_those_of_the_rows_that_the_local_engine_keeps(k, on_partition):
    table, cuts, stream = texts_table(), (100, 101, 350), RandomStream(5)
    kept = kept_rows(open_table(table), "person", k, RandomStream(5))
    chosen = table.filter(pl.Series(kept.mask(0, table.height)))
    first = dict(enumerate([0, *cuts]))
    words = UnitWords(stream.substreams(1), stream.shared_key, first)
    found = kept_texts(table, words, k, cuts, on_partition)
    assert found == counted_here(chosen, (TOWN, CODE))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_without_a_seed_every_attempt_keeps_the_same_texts(k, on_partition):
    """Texts of one unit go to many tasks: an attempt that chose anew would count it twice."""
    table = texts_table(300, units=7)
    words = UnitWords(1 << 63, salt=99)
    found = kept_texts(table, words, k, (), on_partition)
    for seed, cuts in enumerate([(7,), (3, 50, 51)]):
        shuffled = table.sample(fraction=1, shuffle=True, seed=seed)
        assert kept_texts(shuffled, words, k, cuts, on_partition) == found
    assert sum(found["code"][1]) == 7 * k
    # Another salt keeps others; so would the broken twin, words of a stream of its own.
    others = [
        kept_texts(table, UnitWords(1 << 63, salt=salt), k, (), on_partition) for salt in range(9)
    ]
    assert any(other != found for other in others)
    twin = [UnitWords(1 << 63, os.urandom(32)) for _ in range(9)]
    assert any(kept_texts(table, each, k, (), on_partition) != found for each in twin)


def test_rows_of_units_are_never_counted_without_words():
    schema = Schema((Feature("person", role="identifier"), TOWN), unit="person")
    with pytest.raises(ParameterError, match="none were given"):
        candidate_texts.counted_texts(None, schema, (TOWN,), None)
    with pytest.raises(ParameterError, match="none were given"):
        codes.code_source(None, schema, None, 2)


# Drawing


def shared(sampler):
    """What a worker gets for a broadcast."""
    return SimpleNamespace(value=pickle.loads(pickle.dumps(sampler)))


def sampler_of(opened):
    return sampling.worker_sampler(opened, opened.sampler)


def local_rows(rows, **options):
    opened = small_session(rows=rows, **options)
    return decoded_here(opened, rows), opened


def decoded_here(opened, rows, how=None):
    (chunks,) = opened.draw(rows)
    return pl.concat(decoded(opened.model, chunks, opened.stream, Decoding(how)))


def numbers(*values):
    return [arrow_batches.record_batch(id=pa.array(values, pa.int64()))] if values else []


def frame_of(found):
    return pl.from_arrow(pa.Table.from_batches(found))


@pytest.mark.parametrize("options", [{"method": "pegs"}, {"method": "pegs-rs", "block_size": 7}])
@pytest.mark.parametrize("lots", [[(0, 1, 2)], [(0,), (1,), (2,)], [(0, 1), (), (2,)]])
def test_chunks_equal_the_local_ones_however_they_are_dealt(options, lots):
    rows = 2 * CHUNK_ROWS + 100
    wanted, _ = local_rows(rows, alpha=0.5, **options)
    opened = small_session(rows=rows, alpha=0.5, **options)
    stream = opened.stream
    schedule = opened.sampler.schedule
    chunks = -(-rows // schedule.chunk_rows)
    words = sampling.Stream(stream.shared_key, stream.substreams(chunks), stream.substreams(1))
    task = sampling.DrawChunks(shared(sampler_of(opened)), schedule, rows, words)
    found = [batch for lot in lots for batch in task(numbers(*lot))]
    assert frame_of(found).equals(wanted)


def session_of_pay(rows, **options):
    """A session on a measured number whose mean hangs on few large values."""
    words = np.random.default_rng(2)
    pay = np.where(words.random(4000) < 0.7, 0, np.exp(words.normal(8, 1.5, 4000)).astype(int))
    schema = Schema(
        (
            Feature("pay", "numeric", edges="private", dtype="int64"),
            Feature("c", categories=("0", "1")),
        ),
        reviewed=True,
    )
    data = pl.DataFrame({"pay": pay, "c": [str(each) for each in words.integers(0, 2, 4000)]})
    told = {"method": "pegs", "heads": 1, "order": "public", "epsilon": 20.0, "seed": 1}
    return PeGS(rows=rows, **told | options).fit(data, schema).session


def test_chunks_meet_clipped_sums_as_the_local_ones_do():
    rows = 3000
    wanted = decoded_here(session_of_pay(rows), rows, "values")
    opened = session_of_pay(rows)
    assert opened.model.shapes["pay"].source.tree.clipped_sum is not None
    stream = opened.stream
    words = sampling.Stream(
        stream.shared_key,
        rows=stream.substreams(1),
        levels=stream.substreams(1) if opened.sampler.splitter else 0,
        values=stream.substreams(1),
    )
    task = sampling.DrawChunks(shared(sampler_of(opened)), opened.sampler.schedule, rows, words)
    assert frame_of(list(task(numbers(0)))).equals(wanted)
    # Without the sum other values come out, so that the comparison says something.
    told = replace(sampler_of(opened), decoder=decoder_of(opened.model))
    task = sampling.DrawChunks(shared(told), opened.sampler.schedule, rows, words)
    assert not frame_of(list(task(numbers(0)))).equals(wanted)


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_chains_meet_clipped_sums_however_rows_come_in(on_partition, size):
    rows, buckets = 3000, 3
    options = {"method": "pegs-capped", "visits": 400, "chains": 1, "urn": False}
    wanted = decoded_here(session_of_pay(rows, **options), rows, "values")
    opened = session_of_pay(rows, **options)
    stream = opened.stream
    words = sampling.Stream(
        stream.shared_key,
        rows=stream.substreams(1),
        places=stream.substreams(1),
        levels=stream.substreams(1) if opened.sampler.splitter else 0,
        values=stream.substreams(1),
    )
    ready = sampler_of(opened)
    task = sampling.RunChains(shared(ready), rows, (400,), 1, buckets, words)
    drawn = frame_of(list(task(numbers(0)))).filter(pl.col("chain").is_null())
    parts = [
        drawn.filter(pl.col("bucket") == bucket).sort("word", "place").select("codes")
        for bucket in range(buckets)
    ]
    first = np.cumsum([0, *(part.height for part in parts)]).tolist()
    count = sampling.DecodeRows(shared(ready), first, words, counting=True)
    counted = [
        batch.column("counts")[0].as_py()
        for bucket, part in enumerate(parts)
        for batch in on_partition(count, bucket, batches(part, size))
    ]
    decode = sampling.DecodeRows(shared(sampling.agreed(ready, counted)), first, words)
    found = [
        batch
        for bucket, part in enumerate(parts)
        for batch in on_partition(decode, bucket, batches(part, size))
    ]
    assert frame_of(found).equals(wanted)


def test_without_a_seed_every_attempt_draws_anew():
    opened = small_session(rows=100, alpha=0.5, seed=None)
    words = sampling.Stream(opened.stream.shared_key, 0, 1)
    assert words.key is None
    schedule = opened.sampler.schedule
    task = sampling.DrawChunks(shared(sampler_of(opened)), schedule, 100, words)
    first, second = (frame_of(list(task(numbers(0)))) for _ in range(2))
    assert first.height == second.height == 100
    assert not first.equals(second)


@pytest.mark.parametrize("chains", [1, 2, 3])
@pytest.mark.parametrize("rows", [2, 100, 3 * CHUNK_ROWS + 5])
def test_places_are_those_of_chains_that_take_turns(chains, rows):
    left = [rows // chains + (chain < rows % chains) for chain in range(chains)]
    turn = place = 0
    while any(left):
        for chain in range(chains):
            if left[chain]:
                assert sampling.place_of(chain, turn, chains, rows) == place
                size = min(CHUNK_ROWS, left[chain])
                left[chain] -= size
                place += size
        turn += 1
    assert place == rows


def test_chains_equal_the_local_ones(on_partition):
    rows, chains, buckets = CHUNK_ROWS + 500, 3, 4
    options = {"method": "pegs-capped", "alpha": 0.5, "visits": 40, "chains": chains, "urn": False}
    wanted, local = local_rows(rows, **options)
    opened = small_session(rows=rows, **options)
    stream = opened.stream
    words = sampling.Stream(
        stream.shared_key,
        rows=stream.substreams(chains),
        places=stream.substreams(1),
        values=stream.substreams(1),
    )
    ready = shared(sampler_of(opened))
    task = sampling.RunChains(ready, rows, (14, 13, 13), 1, buckets, words)
    drawn = frame_of([*task(numbers(2)), *task(numbers(0, 1))])
    for chain, counters in enumerate(local.spent.counters):
        pieces = drawn.filter(pl.col("chain") == chain).sort("place").get_column("codes")
        assert np.array_equal(np.frombuffer(b"".join(pieces), np.uint32), counters)
    found, first = [], [0]
    for bucket in range(buckets):
        part = drawn.filter(pl.col("bucket") == bucket).sort("word", "place").select("codes")
        decode = sampling.DecodeRows(ready, first, words)
        found += on_partition(decode, bucket, batches(part, 100))
        first.append(first[-1] + part.height)
    assert frame_of(found).equals(wanted)


# Types and errors


def test_types_that_spark_does_not_have():
    features = (
        Feature("a", categories=("1", "2"), dtype="uint8"),
        Feature("b", categories=("x", "y"), dtype="dictionary"),
        Feature("c", kind="numeric", edges=(0.0, 5.0, 9.0), dtype="uint64"),
        Feature("d", categories=("2020-01-01", "2021-01-01"), dtype="date32[day]"),
    )
    decoder = Decoder(Schema(features))
    types = arrow_batches.spark_types(decoder.schema)
    assert types.simpleString() == "struct<a:smallint,b:string,c:decimal(20,0),d:date>"
    frame = decoder.decode(np.zeros((3, 4), np.uint8), np.zeros(3, np.uint64))
    (batch,) = arrow_batches.spark_batches(frame)
    assert batch.to_pylist()[0] | {"c": 0} == {
        "a": 1,
        "b": "x",
        "c": 0,
        "d": pl.Series(["2020-01-01"]).str.to_date()[0],
    }


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x\npegsynth.errors.SchemaError: mend it\n at y", SchemaError, "mend it"),
        ("ModuleNotFoundError: No module named 'pegsynth'", EngineError, "has no pegsynth"),
        ("pegsynth.errors.Nonesuch: secret", EngineError, "gave up while counting"),
        ("Job aborted: secret", EngineError, "gave up while counting"),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/b.c.parquet."
            "  SQLSTATE: KD001\n secret",
            DataError,
            "^/a/b.c.parquet: the file is truncated",
        ),
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file hdfs://h/b."
            " File does not exist. secret",
            DataError,
            "^hdfs://h/b: a worker finds no such file",
        ),
        (
            "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading "
            "file file:/a.parquet. Data type mismatches when reading Parquet column [b.c]. "
            "Expected Spark type string, actual Parquet type DOUBLE.",
            DataError,
            "^/a.parquet: column 'b.c' has another type",
        ),
    ],
)
def test_errors_of_spark_become_plain_ones(text, kind, message):
    from pyspark.errors import PySparkException

    with pytest.raises(kind, match=message) as refused, spark_session.plain_errors("counting"):
        raise PySparkException(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_for_the_jvm_and_are_passed_on(number, monkeypatch):
    passed, ended = [], threading.Event()
    before = signal.signal(number, lambda got, _: passed.append(got))
    try:
        with stopping.signals_held(ended.set):
            signal.raise_signal(number)
            assert passed == [number]
            assert not ended.is_set()
            monkeypatch.setattr(stopping, "in_java", lambda frame: True)
            signal.raise_signal(number)
            signal.raise_signal(number)
            assert ended.wait(10)
            assert passed == [number]
        assert passed == [number, number]
        assert signal.getsignal(number)(0, None) is None
    finally:
        signal.signal(number, before)


def test_a_second_signal_is_still_ignored_when_the_session_ends():
    """The command ignores signals once it tidies up; ending the session is part of that."""

    def leave(number, frame):
        signal.signal(number, ignore)
        raise SystemExit(128 + number)

    def ignore(number, frame):
        pass

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit), stopping.signals_held(lambda: None):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is ignore
    finally:
        signal.signal(signal.SIGTERM, before)


def test_frames_of_spark_are_told_from_ours():
    names = {"__name__": "py4j.protocol"}
    exec("def call(ask): return ask()", names)
    assert names["call"](lambda: stopping.in_java(sys._getframe()))
    assert not stopping.in_java(sys._getframe())


def test_sessions_that_cannot_be_used():
    with pytest.raises(ParameterError, match="give the SparkSession"):
        spark_session.check_session("spark://host:7077")
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(ParameterError, match="Spark Connect"):
        spark_session.check_session(connect)
    conf = SimpleNamespace(getConf=lambda: {"spark.speculation": "true"})
    with pytest.raises(ParameterError, match=r"spark\.speculation=false"):
        spark_session.refuse_speculation(SimpleNamespace(sparkContext=conf))


def test_merged_rows_count_alike_one_by_one_and_extended():
    levels = [np.array([0, 1, 1]), np.array([0, 0, 1, 2]), np.array([0, 1])]
    table = np.random.default_rng(1).integers(0, 2, (50, 3)).astype(np.uint8)
    rows = MergedRows.of(table, levels)
    assert rows.sizes == (2, 3, 2)
    for got, last in zip(rows.extended((0, 2), [1]), [1], strict=True):
        assert np.array_equal(got, rows.count((0, 2, last)))
    with TableCounter(levels, [(0, 1), (0, 2), (1, 2)]) as counter:
        counter.add(table)
        for table_, counted in zip([(0, 1), (0, 2), (1, 2)], counter.counts(), strict=True):
            assert np.array_equal(counted, rows.count(table_))
