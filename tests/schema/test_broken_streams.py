"""A stream that breaks in the middle leaves no thread behind, not even for the collector.

Joining a thread while garbage is collected can stop a program for ever: the collector may run
while the interpreter itself is starting a thread.
"""

import gc
import threading

import polars as pl
import pytest

from pegsynth.codec.codec import encode_table
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.tables.reader import TableReader

SCHEMA = Schema((Feature("a", categories=("x", "y")),))
ROWS = 1 << 16


class Damaged:
    """Rows of which no frame can be made."""

    height, width = ROWS, 1

    def frame(self):
        raise DataError("t: damaged")


def pieces(wanted):
    """Go on for longer than anybody reads ahead."""
    good = pl.DataFrame({"a": ["x"] * ROWS})
    yield good
    yield Damaged()
    for _ in range(200):
        yield good


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def refuse():
    reader = TableReader(("a",), "t", True, (pieces,), {"a": pl.String()})
    with pytest.raises(DataError, match="damaged"):
        list(encode_table(reader, SCHEMA))


def test_no_thread_outlives_a_damaged_piece(without_collector):
    before = threading.active_count()
    refuse()
    assert threading.active_count() == before
