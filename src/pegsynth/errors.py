"""The few exceptions a user can meet.

Every message names the object (file, column, parameter), says what is wrong and what to
do about it, and never holds a value of the data. The command line prints the message
alone and exits with status 2.
"""

import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MOST_SHOWN = 3000


def escaped(text: str) -> str:
    """Return a text with the characters that steer a terminal written as escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def legible(message: str) -> str:
    """Return a message that can be printed, whatever a file had its names look like.

    A message that would drown its reader is cut.
    """
    text = escaped(message)
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]} .. {text[-_MOST_SHOWN // 2 :]}"


class BookNote(str):
    """What a budget book holds after a run that failed: a note on whatever error ended it."""

    __slots__ = ()


def book_notes(error: BaseException) -> list[str]:
    """Return what was noted of budget books; notes of libraries may hold values of the data."""
    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, BookNote)]


def with_notes_of(error: BaseException, other: BaseException) -> BaseException:
    """Let an error that stands for another one carry what was noted of budget books."""
    for note in book_notes(other):
        error.add_note(note)
    return error


class PegsynthError(Exception):
    """Base of all errors that are the caller's to mend."""


class ParameterError(PegsynthError, ValueError):
    """A parameter is outside its range or does not go with another."""


class SchemaError(PegsynthError, ValueError):
    """The schema is not readable, not consistent, or not reviewed."""


class DataError(PegsynthError, ValueError):
    """A table cannot be read or does not fit its schema."""


class EmptyTableError(DataError):
    """A table has columns but no rows."""


class BudgetError(PegsynthError, ValueError):
    """A privacy budget is missing, malformed, impossible to meet, or spent."""


class ModelError(PegsynthError, ValueError):
    """A model or ledger file is truncated, foreign, newer than this program, or altered."""


class OutputError(PegsynthError, OSError):
    """An output cannot be written; nothing was left half-written."""


class EngineError(PegsynthError, RuntimeError):
    """A cluster, or a process that was forked too late, cannot do the work."""
