"""A process that has the libraries of foreign files loaded, and forks for every file.

Starting an interpreter takes longer than reading a small file. What reads is the program of
`pegsynth.foreign.serve` all the same, in a process of its own that may crash.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, Self

MOST_MEMORY = 3 << 30


class Forked:
    """A process of the forking one: as much of `subprocess.Popen` as its client uses."""

    def __init__(self, pid: int, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode = 0

    def wait(self, timeout: float | None = None) -> int:
        """Do not wait: the forking process does."""
        return 0

    def kill(self) -> None:
        """Stop it at once."""
        os.kill(self.pid, signal.SIGKILL)


class Forker:
    """The forking process, and how to ask it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.forked", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            # The worker may stand elsewhere, and this package is found from its folder.
            cwd=Path(__file__).parents[1],
        )
        theirs.close()
        if self._ours.recv(1) != b"r":
            raise RuntimeError("the forking process did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ours.close()
        self._process.wait()

    def launch(self) -> Forked:
        """Start a process that reads one file."""
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        socket.send_fds(self._ours, [b"f"], [read_in, write_out])
        pid = int.from_bytes(self._ours.recv(8), "little")
        os.close(read_in)
        os.close(write_out)
        return Forked(pid, os.fdopen(write_in, "wb"), os.fdopen(read_out, "rb"))


def main(handle: int) -> None:
    """Fork for every pair of pipes that comes in, until nobody is left to ask."""
    import duckdb  # noqa: F401 (loaded for all who follow)
    import fastexcel  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyreadstat  # noqa: F401

    from pegsynth.foreign import duck, excel, serve, statistics_files  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=handle) as asking:
        asking.send(b"r")
        while True:
            order, handles, _, _ = socket.recv_fds(asking, 1, 2)
            if not order:
                return
            pid = os.fork()
            if pid == 0:
                _become(handles, asking)
            for each in handles:
                os.close(each)
            asking.send(pid.to_bytes(8, "little"))


def _become(handles: list[int], asking: socket.socket) -> None:
    from pegsynth.foreign import serve

    status = 1
    try:
        asking.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(handles[0], 0)
        os.dup2(handles[1], 1)
        os.closerange(3, 256)
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        status = serve.main()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
