"""The command ``pegs``: how it begins and ends. One message per error, and never a value.

The text of an unexpected exception may quote a cell of the table, so the command reports only
its type and the line of the program that raised it. Exit statuses: 0 done, 1 a
check failed, 2 bad input, usage or surroundings, 3 a fault of the program, 128 + n after
signal n.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from pegsynth.cli.signals import STOPPED, Stopped, leaving_on_signals
from pegsynth.errors import PegsynthError, book_notes, legible

if TYPE_CHECKING:
    from pegsynth.random import Streams

TRACEBACK = "PEGSYNTH_TRACEBACK"
"""Environment variable that asks for whole tracebacks, which may hold values of the data."""

FEWEST_FILES = 64
LEAST_SPACE = 4 << 30
_SURROUNDINGS = {
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
    errno.ENFILE: "too many open files on this machine; close some",
    errno.ENOMEM: "not enough memory; use fewer heads or a smaller block",
    errno.EAGAIN: "no further thread or process may be started; raise the limit (ulimit -u)",
}


def main(arguments: Sequence[str] | None = None, *, streams: Streams | None = None) -> None:
    """Run the command line; whatever happens, leave by an exit status.

    Parameters
    ----------
    arguments
        Those of a command; None: as the process was given them.
    streams
        Makes random streams; None: from the operating system. Audits state another.
    """
    _check_limits()
    atexit.unregister(gc.freeze)
    # Else Python looks for garbage among everything that was imported: a third of a short command.
    atexit.register(gc.freeze)
    try:
        _work(arguments, streams)
    except PegsynthError as error:
        _refuse(str(error), error)
    except MemoryError as error:
        _refuse(_SURROUNDINGS[errno.ENOMEM], error)
    except BrokenPipeError:
        # The reader of our output went away; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Stopped as error:
        _say(f"pegs: {STOPPED}", error)
        raise
    except (SystemExit, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of a library is no Exception)
        _report(error)


def _work(arguments: Sequence[str] | None, streams: Streams | None) -> None:
    with leaving_on_signals(), _silent_libraries():
        from pegsynth.cli import application

        application.run(arguments, streams)


@contextmanager
def _silent_libraries() -> Iterator[None]:
    """Print no warning of a library: whether a number overflows, say, depends on the data."""
    with warnings.catch_warnings():
        if not os.environ.get(TRACEBACK):
            warnings.showwarning = lambda *_, **__: None
        yield


def _say(message: str, error: BaseException | None) -> None:
    """Print a message, and last what a budget book holds after the error."""
    notes = [] if error is None else [legible(note) for note in book_notes(error)]
    print(message, *notes, sep="\n", file=sys.stderr)


def _refuse(message: str, error: BaseException | None = None) -> NoReturn:
    _say(f"pegs: {legible(message)}", error)
    sys.exit(2)


def _report(error: BaseException) -> NoReturn:
    """Report an unexpected error without quoting a value."""
    if os.environ.get(TRACEBACK):
        print("pegs: CONFIDENTIAL: what follows may hold values of the data", file=sys.stderr)
        traceback.print_exception(error)
        sys.exit(3)
    if message := _of_surroundings(error):
        _refuse(message, error)
    _say(
        f"pegs: internal error ({type(error).__name__} at {_place(error)}); this is a fault of the "
        f"program, please report it. {TRACEBACK}=1 shows more, which may hold values of the data",
        error,
    )
    sys.exit(3)


def _of_surroundings(error: BaseException) -> str:
    """Return a message when the machine, and not the program, is at fault."""
    if isinstance(error, OSError) and error.errno in _SURROUNDINGS:
        return _SURROUNDINGS[error.errno]
    if isinstance(error, OSError) and error.errno and isinstance(error.filename, str):
        return f"{error.filename}: {os.strerror(error.errno)}"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return _SURROUNDINGS[errno.EAGAIN]
    return ""


def _place(error: BaseException) -> str:
    """Return the last line of our own code that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}pegsynth{os.sep}" in f.filename] or frames
    if not ours:
        return "an unknown line"
    return f"{ours[-1].filename.rpartition(f'{os.sep}pegsynth{os.sep}')[2]}:{ours[-1].lineno}"


def _check_limits() -> None:
    """Refuse limits under which libraries crash or hang, and forbid core files.

    A core file would hold the memory, and with it the table.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limits.
        return
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < FEWEST_FILES:
        _refuse(f"only {files} open files are allowed; allow {FEWEST_FILES} or more (ulimit -n)")
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY and space < LEAST_SPACE:
        _refuse(
            "the address space is limited (ulimit -v) to less than 4 GiB, and libraries reserve "
            "more than they use; limit the memory by a control group instead"
        )


if __name__ == "__main__":
    main()
