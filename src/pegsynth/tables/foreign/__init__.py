"""Files of other programs, read in a process of their own.

SPSS, Stata, SAS, Excel and DuckDB files are read by compiled libraries that a broken file may
crash. `serve` is what that process runs: it imports none of the package but this folder, takes
requests as lines of JSON and answers with Arrow streams. `pegsynth.tables.foreign_read` is its
client. What the process says of a file that it cannot read is a code and public names, never a
value.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Asked:
    """What a process is to read.

    Parameters
    ----------
    reader
        Module of this folder and class that read it.
    path, kind
        The file, and what it is (`pegsynth.tables.file_kinds`).
    table, query
        The sheet of a workbook; the table or the query of a database.
    encoding
        Of the texts of a statistics file, where it is declared.
    """

    reader: str
    path: str
    kind: str
    table: str | None = None
    query: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Described:
    """What a file declares of its table.

    Parameters
    ----------
    schema
        Its Arrow schema as text; see `arrow_schema`.
    count
        The number of rows, if it is known.
    coded
        Columns of text whose values say what they are.
    relation
        What the rows come from; see `pegsynth.tables.reader.Relation`.
    labels, value_labels, missing, measure
        By column what a codebook has: its label, codes with their labels, ranges of missing
        codes, and how it is measured.
    """

    schema: str
    count: int | None
    coded: Sequence[str] = ()
    relation: Literal["table", "view", "other"] = "table"
    labels: Mapping[str, str] = field(default_factory=dict)
    value_labels: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    missing: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    measure: Mapping[str, str] = field(default_factory=dict)

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of the columns."""
        import pyarrow as pa
        from pyarrow import ipc

        return ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))


def schema_text(schema: pa.Schema) -> str:
    """Return an Arrow schema as text."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


class ForeignError(Exception):
    """A file that cannot be read, told by a code.

    Parameters
    ----------
    code
        ``missing-package``, ``broken``, ``too-large``, ``no-sheet``, ``no-table``, ``which-table``,
        ``bad-query`` or ``in-use``.
    names
        Names of packages, sheets or tables that belong to it.
    """

    def __init__(self, code: str, names: Sequence[str] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.names = [str(name) for name in names]
