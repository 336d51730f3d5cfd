"""The container of our own files: what goes in comes out, and nothing else is believed."""

import io
import os
import random
import tracemalloc
import zlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from checks.fuzz.containers import Parts, put_together, taken_apart, wild_arrays, with_array
from pegsynth.errors import ModelError, OutputError
from pegsynth.tables import container as packed_arrays
from pegsynth.tables.container import (
    Container,
    ContainerError,
    ForeignFileError,
    OtherFormatError,
    is_container,
    read_container,
    save_container,
    write_container,
)

NOTICE = "CONFIDENTIAL: for this test"
KINDS = ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")


def written(arrays=None, *, manifest=b'{"a":1}', notice=NOTICE, pack=True):
    sink = io.BytesIO()
    content = Container(notice, "test", 2, manifest, {} if arrays is None else arrays)
    write_container(sink, content, pack=pack)
    return sink.getvalue()


def read(content, **options):
    return read_container(io.BytesIO(content), **{"kind": "test", "format_": 2, **options})


ANY_ARRAY = st.sampled_from(KINDS).flatmap(
    lambda kind: arrays_of.arrays(
        kind, arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
    )
)


@given(arrays=st.dictionaries(st.text(max_size=9), ANY_ARRAY, max_size=4), pack=st.booleans())
def test_what_goes_in_comes_out(arrays, pack):
    found = read(written(arrays, pack=pack))
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes()
        assert found.arrays[name].flags.writeable
    assert (found.notice, found.kind, found.format) == (NOTICE, "test", 2)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(3, 4)[:, ::2],
        np.arange(12).reshape(3, 4).T,
        np.arange(5, dtype=">i8"),
        np.arange(5)[::-1],
    ],
    ids=["every other", "turned", "big-endian", "backwards"],
)
def test_arrays_of_any_layout(array):
    found = read(written({"a": array})).arrays["a"]
    assert np.array_equal(found, array)
    assert found.dtype.str == "<i8"


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([object()]), np.array([1j])])
def test_types_that_are_not_held(array):
    with pytest.raises(ModelError, match="of a type that no file of ours holds"):
        written({"a": array})


def test_a_manifest_with_line_breaks_stays_one_line():
    content = written(manifest=b'{\n "a": "x\\n",\n "n": 1.50\n}')
    assert content.count(b"\n") == 3
    assert read(content).manifest == b'{"a":"x\\n","n":1.50}'


def test_the_notice_stands_first_and_decides_who_may_read(tmp_path):
    for word, mode in (("CONFIDENTIAL", 0o600), ("SHAREABLE", 0o644)):
        path = tmp_path / word
        save_container(path, Container(f"{word}: x", "test", 1, b"{}"))
        assert path.read_bytes().startswith(f"{word}: x\n".encode())
        assert path.stat().st_mode & 0o777 == mode


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "c"
    save_container(path, Container(NOTICE, "test", 1, b"{}"))
    before = path.read_bytes()
    content = Container(NOTICE, "test", 1, b'{"new":1}', {"a": np.arange(9)})

    def full():
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="disk is full"):
        save_container(path, content, before=full)
    assert path.read_bytes() == before
    seen = []
    save_container(path, content, before=lambda: seen.append(path.read_bytes()))
    assert seen == [before]
    assert path.read_bytes() != before
    assert os.listdir(tmp_path) == ["c"]


def test_without_arrays_the_checksum_is_compared_all_the_same():
    content = written({"a": np.arange(999)}, pack=False)
    assert read(content, with_arrays=False).arrays == {}
    broken = bytearray(content)
    broken[-200] ^= 1
    with pytest.raises(ContainerError, match="checksum"):
        read(bytes(broken), with_arrays=False)


# What is refused


@pytest.fixture(scope="module")
def sound():
    return written({"a": np.arange(50), "b": np.ones((2, 3)), "c": np.array([True, False])})


def test_every_single_byte_counts(sound):
    for spot in range(len(sound)):
        broken = bytearray(sound)
        broken[spot] ^= 1
        with pytest.raises(ContainerError):
            read(bytes(broken))


def test_every_cut_is_seen(sound):
    for length in range(len(sound)):
        with pytest.raises(ContainerError):
            read(sound[:length])
    with pytest.raises(ContainerError):
        read(sound + b"x")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"CONFIDENTIAL", b"CONFIDENTIAL\n{}\n", b"\n\n"])
def test_other_files(content):
    assert not is_container(io.BytesIO(content))
    with pytest.raises(ForeignFileError, match="this is not a test"):
        read(content)


def test_another_kind_and_other_formats(sound):
    assert is_container(io.BytesIO(sound))
    with pytest.raises(ForeignFileError, match="this is a test and not a model"):
        read(sound, kind="model")
    with pytest.raises(OtherFormatError) as found:
        read(sound, format_=1)
    assert found.value.found == 2
    parts = taken_apart(sound)
    for change in ({"pegsynth": 2}, {"format": 1}, {"format": 3, "arrays": "of another age"}):
        with pytest.raises(OtherFormatError):
            read(put_together(replace(parts, header={**parts.header, **change})))
    for change in ({"pegsynth": 0}, {"format": 0}, {"format": -1}):
        with pytest.raises(ContainerError, match="damaged"):
            read(put_together(replace(parts, header={**parts.header, **change})))


def test_sizes_are_refused_before_anything_is_allocated():
    """A header of a hundred bytes asks for a terabyte, in every way that there is."""
    sound = taken_apart(written({"a": np.zeros(1000)}))
    (entry,) = sound.header["arrays"]
    assert entry["packed"]
    changes = [
        {"shape": [1 << 40]},
        {"shape": [1 << 20, 1 << 20]},
        {"stored": 1 << 40},
        {"stored": 1 << 40, "shape": [1 << 37], "packed": False},
        {"shape": [packed_arrays.MOST_UNPACKED]},
        {"shape": [0, 1 << 60]},
        {"shape": [1] * 99},
    ]
    files = [
        put_together(Parts(sound.notice, {**sound.header, "arrays": [entry | each]}, sound.bodies))
        for each in changes
    ]
    tracemalloc.start()
    try:
        for content in files:
            with pytest.raises(ContainerError):
                read(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_stream_that_unpacks_to_more_than_was_declared_is_not_unpacked():
    parts = with_array(
        taken_apart(written({"a": np.zeros(10)})), "a", zlib.compress(bytes(1 << 27)), packed=True
    )
    content = put_together(parts)
    tracemalloc.start()
    try:
        with pytest.raises(ContainerError, match="arrays are damaged"):
            read(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_truth_values_that_are_neither():
    parts = with_array(taken_apart(written({"a": np.array([True])})), "a", b"\x07")
    with pytest.raises(ContainerError, match="arrays are damaged"):
        read(put_together(parts))


@pytest.mark.parametrize("seed", range(200))
def test_whatever_a_header_says_there_is_a_result_or_a_message(seed):
    source = random.Random(seed)
    parts = taken_apart(written({"a": np.arange(50), "b": np.ones((2, 3)), "c": np.zeros(0)}))
    content = put_together(wild_arrays(parts, source))
    with suppress(ContainerError):
        assert set(read(content).arrays)


# What is written is read


@pytest.mark.parametrize("length", [1000, 40_000, 100_000])
def test_arrays_that_shrink_too_well_are_packed_up_to_a_limit(monkeypatch, length):
    """Bounds against bombs must not refuse a table of equal rows."""
    monkeypatch.setattr(packed_arrays, "MOST_UNPACKED", 1 << 16)
    monkeypatch.setattr(packed_arrays, "MOST_GROWTH", 20)
    arrays = {f"{n}": np.zeros(length, dtype=np.uint8) for n in range(5)}
    arrays["noise"] = np.random.default_rng(1).integers(0, 255, 5000).astype(np.uint8)
    content = written(arrays)
    found = read(content).arrays
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    packed = [each["packed"] for each in taken_apart(content).header["arrays"]]
    allowed = min(5, (1 << 16) // length)
    assert packed == [True] * allowed + [False] * (5 - allowed) + [False]
