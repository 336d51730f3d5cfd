"""Public files that a schema names: found beside it, read whole, and never named again.

What they say becomes part of the schema, so that a model and a release are whole without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegsynth.errors import SchemaError, escaped
from pegsynth.schema.hierarchy import listed_codes

MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class PublicFiles:
    """Where the files of a schema lie.

    Parameters
    ----------
    folder
        The folder of the schema file; None: the schema came as text, and may name no files.
    """

    folder: Path | None = None

    def lines(self, name: str, key: str) -> list[tuple[int, list[str]]]:
        """Return the numbered lines of a list of codes; see `listed_codes`.

        Raises
        ------
        SchemaError
            With the key and the file.
        """
        where = f"{key} = {_shown(name)}"
        if self.folder is None:
            raise SchemaError(
                f"{where}: a schema that is not itself a file names no others; write the list into "
                "the schema"
            )
        path = self.folder / name
        try:
            if not path.is_file():
                raise FileNotFoundError
            if path.stat().st_size > MOST_BYTES:
                raise SchemaError(f"{where}: the file is larger than 64 MiB; list fewer codes")
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            raise SchemaError(
                f"{where}: there is no such file; names count from the folder of the schema"
            ) from None
        except UnicodeDecodeError:
            raise SchemaError(f"{where}: the file is not UTF-8 text; save it as UTF-8") from None
        except (OSError, ValueError):
            raise SchemaError(f"{where}: the file cannot be read; check its name") from None
        try:
            lines = listed_codes(text)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None
        if not lines:
            raise SchemaError(f"{where}: the file lists nothing; write a line for each code")
        return lines

    def codes(self, name: str, key: str) -> tuple[str, ...]:
        """Return the first cell of every line."""
        return tuple(cells[0] for _, cells in self.lines(name, key))

    def labels(self, name: str, key: str) -> tuple[tuple[str, str], ...]:
        """Return the first two cells of every line: a code, and what it means."""
        lines = self.lines(name, key)
        for number, cells in lines:
            if len(cells) < 2 or not cells[1]:
                raise SchemaError(
                    f"{key} = {_shown(name)}: line {number} has no text for its code; write the "
                    "code and what it means"
                )
        return tuple((cells[0], cells[1]) for _, cells in lines)


def _shown(name: str) -> str:
    return repr(escaped(name[:80]))
