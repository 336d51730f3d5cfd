"""Counting that goes on where it stopped gives what counting at once gives."""

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.codec import codec
from pegsynth.errors import DataError, ModelError, OutputError, ParameterError
from pegsynth.methods import checkpoint as checkpoints
from pegsynth.methods.checkpoint import NOTICE, Checkpoint, Stage, resuming
from pegsynth.methods.registry import PegsOptions
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.tables.reader import Place
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import write_table
from small_release import fitted_model, settled_plan, small_schema, small_table

ROWS = 700
LINE = NOTICE.encode() + b"\n"


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Small batches, and a checkpoint after every one of them."""
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", -1.0)
    monkeypatch.setattr(Checkpoint, "due", property(lambda self: True))
    monkeypatch.setattr(codec, "_ROWS_TOGETHER", 1)


class Killed(BaseException):
    """The process ends here."""


def files(folder, table, extension=".csv", parts=7):
    """Write a table as several files and return the glob."""
    folder.mkdir(exist_ok=True)
    step = -(-len(table) // parts)
    for number in range(parts):
        write_table(folder / f"{number}{extension}", table.slice(step * number, step))
    return f"{folder}/*{extension}"


def settled(schema, order, budget):
    return settled_plan(schema, budget, rows=100, order=order)


def fitted(source, schema, plan, path, *, seed=1, killed_after=None):
    """Fit with a checkpoint; end as a killed process does after so many of them."""
    saved = []

    def save(self, name, stage):
        original(self, name, stage)
        saved.append((name.split(" ")[0], stage.place.rows))
        if len(saved) == killed_after:
            raise Killed

    original = Checkpoint.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save)
        reader = open_table(source)
        stream = RandomStream(seed)
        try:
            with resuming(path, reader, schema, plan, seed) as checkpoint:
                model = fit(
                    reader,
                    Settled(schema, Request(method="pegs", threads=1), plan),
                    stream,
                    checkpoint=checkpoint,
                )
        except Killed:
            return None, saved
    return model, saved


def cells(model):
    return [[part.tolist() for part in block.cells()] for block in model.content.blocks.blocks]


CASES = {
    "public": ("public", Budget(alpha=1.0)),
    "data": ("data", Budget(alpha=1.0)),
    "private": ("private", Budget(epsilon=20.0)),
}


@pytest.mark.parametrize("units", [0, 60], ids=["rows", "units"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("extension", [".csv", ".parquet", ".arrow"])
def test_a_seeded_fit_resumes_to_the_identical_result(tmp_path, units, case, extension):
    schema = small_schema(rows_per_unit=3 if units else 0)
    source = files(tmp_path / "data", small_table(ROWS, units=units), extension)
    plan = settled(schema, *CASES[case])
    expected = fitted_model(source, schema, plan, RandomStream(1))
    path = tmp_path / "checkpoint"
    _, whole = fitted(source, schema, plan, path)
    assert not path.exists()
    for killed_after in range(1, len(whole) + 1, 3):
        assert fitted(source, schema, plan, path, killed_after=killed_after)[0] is None
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes().startswith(b"CONFIDENTIAL")
        model, rest = fitted(source, schema, plan, path)
        assert not path.exists()
        assert len(rest) <= len(whole) - killed_after + 1
        assert cells(model) == cells(expected)
        assert model.content.blocks.spec == expected.content.blocks.spec
        if case == "private":
            for mine, other in zip(
                model.content.marginals.shares, expected.content.marginals.shares, strict=True
            ):
                assert np.array_equal(mine, other)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "data"]


def test_one_file_goes_on_in_its_middle(tmp_path):
    table = small_table(ROWS)
    table.write_parquet(tmp_path / "t.parquet", row_group_size=50, use_pyarrow=True)
    schema, plan = small_schema(), settled(small_schema(), "public", Budget(alpha=1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegsynth.tables.arrow_read.BATCH_ROWS", 37)
        path = tmp_path / "c"
        _, saved = fitted(tmp_path / "t.parquet", schema, plan, path, killed_after=5)
        model, rest = fitted(tmp_path / "t.parquet", schema, plan, path)
    assert 0 < saved[-1][1] < rest[0][1] < ROWS
    assert cells(model) == cells(fitted_model(table, schema, plan, RandomStream(1)))


def test_an_unseeded_private_order_keeps_nothing_that_was_drawn(tmp_path):
    """Pair counts are kept. Heads, marginals and what was counted under them are not."""
    schema = small_schema()
    source = files(tmp_path / "data", small_table(ROWS))
    plan = settled(schema, *CASES["private"])
    path = tmp_path / "c"
    _, saved = fitted(source, schema, plan, path, seed=None)
    assert {stage for stage, _ in saved} == {"pair"}
    _, before = fitted(source, schema, plan, path, seed=None, killed_after=len(saved))
    held = path.read_bytes()
    assert b"blocks" not in held
    model, again = fitted(source, schema, plan, path, seed=None)
    assert again == []
    assert before
    assert model is not None


def test_units_keep_the_rows_that_were_chosen(tmp_path):
    """An unseeded run may not choose again: a unit would count with rows of both choices."""
    schema = small_schema(rows_per_unit=1)
    source = files(tmp_path / "data", small_table(ROWS, units=20))
    plan = settled(schema, "public", Budget(alpha=1.0))
    for killed_after in (1, 3, 5):
        fitted(source, schema, plan, tmp_path / "c", seed=None, killed_after=killed_after)
        model, _ = fitted(source, schema, plan, tmp_path / "c", seed=None)
        assert [int(block.counts.sum()) for block in model.content.blocks.blocks] == [20] * 3


def test_nothing_of_the_random_stream_is_in_the_file(tmp_path):
    schema = small_schema(rows_per_unit=2)
    source = files(tmp_path / "data", small_table(ROWS, units=60))
    plan = settled(schema, *CASES["private"])
    reader, stream = open_table(source), RandomStream()
    path = tmp_path / "c"
    checkpoint = Checkpoint(path, "this test")
    fit(
        reader,
        Settled(schema, Request(method="pegs", threads=1), plan),
        stream,
        checkpoint=checkpoint,
    )
    checkpoint.release()
    held = path.read_bytes()
    key = stream._key
    assert key not in held
    assert all(key[i : i + 8] not in held for i in range(0, 32, 8))
    for number in range(4):
        words = stream.substream((1 << 63) + number).take(8).tobytes()
        assert all(words[i : i + 8] not in held for i in range(0, 64, 8))


def test_one_run_at_a_time(tmp_path):
    """Neither a run that starts later nor one that started before its first save gets in."""
    path = tmp_path / "c"
    stage = Stage(Place(), False, {"counts": np.arange(3)})
    first, early = Checkpoint(path, "x"), Checkpoint(path, "x")
    first.save("rows", stage)
    held = path.read_bytes()
    with pytest.raises(ModelError, match="another run uses this checkpoint"):
        Checkpoint(path, "x")
    with pytest.raises(ModelError, match="another run uses this checkpoint"):
        early.save("rows", stage)
    assert path.read_bytes() == held
    first.save("rows", stage)
    first.release()
    later = Checkpoint(path, "x")
    assert later.stage("rows") is not None
    later.save("rows", stage)
    later.remove()
    later.release()
    assert {file.name for file in tmp_path.iterdir()} <= {"c.new"}


# Files that are refused


@pytest.fixture
def stopped(tmp_path):
    """Give a source, a schema, a plan and the checkpoint of a run that was killed."""
    schema = small_schema()
    source = files(tmp_path / "data", small_table(ROWS))
    plan = settled(schema, "public", Budget(alpha=1.0))
    fitted(source, schema, plan, tmp_path / "c", killed_after=3)
    return source, schema, plan, tmp_path / "c"


def test_another_table_or_other_options(stopped, tmp_path):
    source, schema, plan, path = stopped
    other = settled(schema, "public", Budget(alpha=2.0))
    changed = settled(schema, "data", Budget(alpha=1.0))
    for options in ((other, 1), (changed, 1), (plan, 2), (plan, None)):
        with pytest.raises(ModelError, match="another table or other options"):
            fitted(source, schema, options[0], path, seed=options[1])
    part = tmp_path / "data" / "6.csv"
    part.write_text(part.read_text().replace("x,", "y,", 1))
    with pytest.raises(ModelError, match="the table has changed since"):
        fitted(source, schema, plan, path)
    part.unlink()
    with pytest.raises(ModelError, match="the table has changed since"):
        fitted(source, schema, plan, path)
    assert path.exists()


@pytest.mark.parametrize("spot", range(0, 1000, 37))
def test_one_byte_changed(stopped, spot):
    source, schema, plan, path = stopped
    content = bytearray(path.read_bytes())
    content[spot % len(content)] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"damaged|no checkpoint|another"):
        fitted(source, schema, plan, path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"notes", LINE, LINE + b"{}\n", LINE + b"\xff" * 99, LINE + b'{"format":1}\n'),
        LINE + b'{"pegsynth":1,"kind":"checkpoint","format":2}\n',
    ],
)
def test_other_files_are_not_written_over(stopped, content):
    source, schema, plan, path = stopped
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"damaged|no checkpoint"):
        fitted(source, schema, plan, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.99])
def test_a_file_cut_short(stopped, keep):
    source, schema, plan, path = stopped
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(ModelError, match="damaged"):
        fitted(source, schema, plan, path)


def test_frames_cannot_be_resumed(tmp_path):
    with pytest.raises(ParameterError, match="resume requires files"):
        pegsynth.synthesize(
            small_table(), small_schema(), alpha=1.0, rows=5, resume=tmp_path / "checkpoint"
        )


def test_a_checkpoint_that_cannot_be_written(tmp_path):
    schema = small_schema()
    source = files(tmp_path / "data", small_table(ROWS))
    plan = settled(schema, "public", Budget(alpha=1.0))
    with pytest.raises(OutputError, match="folder does not exist"):
        fitted(source, schema, plan, tmp_path / "none" / "c")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "data"]


def test_a_table_with_a_fault_is_refused_with_all_its_faults(tmp_path):
    """Nothing is saved once a value was seen that has no code: it would not be seen again."""
    schema = small_schema()
    table = small_table(ROWS).with_columns(
        a=pl.when(pl.int_range(ROWS).is_in([350, 690])).then(pl.lit("SECRET")).otherwise("a")
    )
    source = files(tmp_path / "data", table)
    plan = settled(schema, "public", Budget(alpha=1.0))
    for _ in range(2):
        with pytest.raises(DataError, match="2 values are not in the schema"):
            fitted(source, schema, plan, tmp_path / "c")


def test_a_sampled_order_is_not_resumed_but_the_blocks_are(tmp_path):
    schema = small_schema()
    source = files(tmp_path / "data", small_table(ROWS), ".parquet")
    plan = settled_plan(schema, alpha=1.0, rows=100, order="data", order_rows=100)
    expected = fitted_model(source, schema, plan, RandomStream(1))
    assert [event.code for event in expected.ledger.events] == ["data-order"]
    _, saved = fitted(source, schema, plan, tmp_path / "c", killed_after=3)
    assert {stage for stage, _ in saved} == {"blocks"}
    model, _ = fitted(source, schema, plan, tmp_path / "c")
    assert cells(model) == cells(expected)
    with pytest.raises(ParameterError, match="--order data"):
        PegsOptions(order="public", order_rows=5)
