"""Files that the program wrote before there was one container are read as they were.

``format_1`` and ``format_2`` hold models, records of what was spent and a checkpoint that those
programs wrote; ``expected.json`` holds what the last of them read from each.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import done
from pegsynth.errors import ModelError
from pegsynth.io.container import is_container
from pegsynth.io.reader import Place
from pegsynth.methods import get
from pegsynth.methods.session import Spent
from pegsynth.storage.model_file import FORMAT, load_model, read_manifest, save_model
from pegsynth.storage.spending import read_spent, spent_path, write_spent
from pegsynth.tables.checkpoint import Checkpoint, Stage

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "format_2" / "expected.json").read_text())


def digest(stored):
    """Return a digest of everything that a model file holds of a fit."""
    found = hashlib.sha256(
        repr((stored.heads, stored.tail_bits, stored.shares, stored.total)).encode()
    )
    for feature, parts in enumerate(stored.cells):
        for part in parts:
            if len(parts[0]):
                found.update(f"{feature} {part.astype(np.int64).tolist()}".encode())
    for name in sorted(stored.arrays):
        array = stored.arrays[name]
        found.update(f"{name} {array.dtype.str} {array.tolist()}".encode())
    return found.hexdigest()


def stored(path):
    model = load_model(path)
    return get(model.method).store(model.content)


@pytest.fixture
def older(tmp_path):
    """Give what copies an older model, and its record if there is one, into a fresh folder."""

    def copy(name):
        source = HERE / f"{name}.model"
        shutil.copyfile(source, tmp_path / "m.pegs")
        record = Path(f"{source}.spent")
        if record.exists():
            shutil.copyfile(record, tmp_path / "m.pegs.spent")
        return tmp_path / "m.pegs"

    return copy


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_model_is_read_as_it_was(older, name):
    path, expected = older(name), EXPECTED[name]
    model = load_model(path)
    assert read_manifest(path).format == int(name[len("format_")]) < FORMAT
    assert digest(get(model.method).store(model.content)) == expected["stored"]
    found = (model.method, list(model.columns), model.ledger.epsilon)
    assert found == (expected["method"], expected["columns"], expected["epsilon"])


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_model_written_again_is_the_same_model(older, name, tmp_path):
    path = older(name)
    model = load_model(path)
    save_model(model, tmp_path / "again.pegs")
    with (tmp_path / "again.pegs").open("rb") as handle:
        assert is_container(handle)
    again = load_model(tmp_path / "again.pegs")
    assert digest(stored(tmp_path / "again.pegs")) == EXPECTED[name]["stored"]
    assert (again.plan, again.ledger, again.schema) == (model.plan, model.ledger, model.schema)
    assert (again.columns, again.dtypes) == (model.columns, model.dtypes)


@pytest.mark.parametrize("name", [name for name in EXPECTED if "spent" in EXPECTED[name]])
def test_an_older_record_is_read_and_replaced_by_one_of_today(older, name):
    path = older(name)
    identity = read_manifest(path).identity
    rows, blocks, seeded, counters = EXPECTED[name]["spent"]
    found = read_spent(path, identity)
    assert (found.rows, found.blocks, found.seeded) == (rows, blocks, seeded)
    assert [line.tolist() for line in found.counters] == counters
    done("sample", path, "--rows", 1, "-o", path.with_name("o.csv"))
    with spent_path(path).open("rb") as handle:
        assert is_container(handle)
    again = read_spent(path, identity)
    assert again.rows == rows + 1
    assert sum(line.sum() for line in again.counters) >= sum(map(sum, counters))


def test_an_older_record_that_waits_for_its_model_is_adopted(older, tmp_path):
    path = older("format_2/capped")
    spent_path(path).rename(f"{spent_path(path)}.new")
    write_spent(path, "another model", Spent(3))
    assert read_spent(path, read_manifest(path).identity).rows == 7
    assert not (tmp_path / "m.pegs.spent.new").exists()


def test_an_older_record_of_another_format(older):
    path = older("format_2/capped")
    text = spent_path(path).read_text().replace('"format":1', '"format":2')
    spent_path(path).write_text(text)
    with pytest.raises(ModelError, match="newer format; update"):
        read_spent(path, read_manifest(path).identity)


def test_an_older_checkpoint_is_read_and_replaced_by_one_of_today(tmp_path):
    shutil.copyfile(HERE / "format_2" / "counts.checkpoint", tmp_path / "c")
    found = Checkpoint(tmp_path / "c", "this table")
    assert found.kept.rows == 11
    assert found.kept.bits.tolist() == [0b10110001, 0b101]
    pairs, blocks = found.stage("pair counts "), found.stage("blocks key")
    assert (pairs.place, pairs.complete) == (Place(2, 5, 11), True)
    assert pairs.arrays["tables"].tolist() == [n**9 for n in range(6)]
    assert pairs.arrays["few"].dtype == np.uint8
    assert (blocks.place, blocks.complete) == (Place(1, 0, 4), False)
    assert blocks.arrays["tables"].tolist() == []
    found.save("blocks key", Stage(Place(2, 0, 8), True, {"tables": np.arange(3)}))
    found.release()
    with (tmp_path / "c").open("rb") as handle:
        assert is_container(handle)
    again = Checkpoint(tmp_path / "c", "this table")
    assert again.stage("pair counts ").arrays["tables"].tolist() == [n**9 for n in range(6)]
    assert again.stage("blocks key").arrays["tables"].tolist() == [0, 1, 2]
    assert again.kept.bits.tolist() == found.kept.bits.tolist()
    again.release()


def test_an_older_checkpoint_of_another_table(tmp_path):
    shutil.copyfile(HERE / "format_2" / "counts.checkpoint", tmp_path / "c")
    with pytest.raises(ModelError, match="another table or other options"):
        Checkpoint(tmp_path / "c", "another table")


@pytest.mark.parametrize("spot", range(0, 589, 31))
def test_an_older_checkpoint_with_one_byte_changed(tmp_path, spot):
    content = bytearray((HERE / "format_2" / "counts.checkpoint").read_bytes())
    content[spot] ^= 1
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(ModelError, match=r"damaged|no checkpoint|another"):
        Checkpoint(tmp_path / "c", "this table")
