"""Tables in and out: files and dataframes as streams of Polars frames.

`open_table` reads, `open_writer` writes, `to_kind` gives a frame back as the caller's own
kind, `atomic_file` makes any output appear whole or not at all.
"""

from pegsynth.io.atomic import atomic_file, atomic_text
from pegsynth.io.caller_frames import frame_kind, to_kind
from pegsynth.io.database import DatabaseTable
from pegsynth.io.reader import TableReader
from pegsynth.io.table_input import open_table
from pegsynth.io.table_output import TableWriter, check_writable, open_writer, write_table

__all__ = [
    "DatabaseTable",
    "TableReader",
    "TableWriter",
    "atomic_file",
    "atomic_text",
    "check_writable",
    "frame_kind",
    "open_table",
    "open_writer",
    "to_kind",
    "write_table",
]
