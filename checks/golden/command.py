"""The command ``pegs`` in this process, by the entry point that users have."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@cache
def _entry() -> Any:
    return entry_points(group="console_scripts")["pegs"].load()


def outcome(*arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    with (
        mock.patch.object(sys, "argv", ["pegs", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            _entry()()
        except SystemExit as leaving:
            code = leaving.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    status = code if isinstance(code, int) else int(code is not None)
    return status, out.getvalue(), err.getvalue()


def pegs(name: str, *arguments: object, status: int = 0) -> None:
    """Run a command and write its status and text into ``NAME.txt``.

    Raises
    ------
    RuntimeError
        The exit status is not `status`.
    """
    code, out, err = outcome(*arguments)
    if code != status:
        line = " ".join(map(str, arguments))
        raise RuntimeError(f"pegs {line}: exit status {code}\n{out}{err}")
    Path(f"{name}.txt").write_text(f"status {code}\n-- out\n{out}-- err\n{err}")
