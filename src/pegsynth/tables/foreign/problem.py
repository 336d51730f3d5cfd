"""What a reader of foreign files may say to its client: a code and public names, never a value."""

from __future__ import annotations

from collections.abc import Sequence


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
