"""A process that has the libraries of foreign files loaded, and forks for every file.

Starting an interpreter takes longer than reading a small file. What reads is the program of
`pegsynth.tables.foreign.serve` all the same, in a process of its own that may crash.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

MOST_MEMORY = 3 << 30
LEAVING_SECONDS = 20.0
_ANSWER = struct.Struct("<dQII")


class Readers(NamedTuple):
    """What the reading processes of one case took, and how they ended.

    Parameters
    ----------
    seconds
        Of the processor, of all of them.
    memory
        The most that one of them held, in bytes.
    crashed
        How many were ended by a signal.
    stuck
        How many went on after their client had left, and had to be stopped.
    """

    seconds: float
    memory: int
    crashed: int
    stuck: int


class Forked:
    """A process of the forking one: as much of `subprocess.Popen` as its client uses."""

    def __init__(self, pid: int, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode = 0

    def wait(self, timeout: float | None = None) -> int:
        """Do not wait: the forking process does, when it is asked for `Readers`."""
        return 0

    def kill(self) -> None:
        """Stop it at once."""
        os.kill(self.pid, signal.SIGKILL)


class Forker:
    """The forking process, and how to ask it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "checks.fuzz.forked", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            # The worker may stand elsewhere, and this package is found from its folder.
            cwd=Path(__file__).parents[2],
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

    def readers(self) -> Readers:
        """Wait until all processes of a case have ended, and say what they took."""
        self._ours.send(b"w")
        answer = self._ours.recv(_ANSWER.size, socket.MSG_WAITALL)
        return Readers(*_ANSWER.unpack(answer))


def main(handle: int) -> None:
    """Fork for every pair of pipes that comes in, until nobody is left to ask."""
    _load()
    living: set[int] = set()
    with socket.socket(fileno=handle) as asking:
        asking.send(b"r")
        while True:
            order, handles, _, _ = socket.recv_fds(asking, 1, 2)
            if not order:
                break
            if order == b"w":
                asking.send(_ANSWER.pack(*ended(living)))
                continue
            pid = os.fork()
            if pid == 0:
                _become(handles, asking)
            for each in handles:
                os.close(each)
            living.add(pid)
            asking.send(pid.to_bytes(8, "little"))
    # Whoever asked is gone, perhaps because one of these does not end.
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    gc.unfreeze()


def ended(living: set[int]) -> Readers:
    """Wait for processes, stop those that do not end, and add up what they took."""
    seconds, memory, crashed, stuck = 0.0, 0, 0, 0
    until = time.monotonic() + LEAVING_SECONDS
    while living:
        pid = min(living)
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if not ended and time.monotonic() < until:
            time.sleep(0.001)
            continue
        if not ended:
            os.kill(pid, signal.SIGKILL)
            _, status, used = os.wait4(pid, 0)
            stuck += 1
        elif os.WIFSIGNALED(status):
            crashed += 1
        living.discard(pid)
        seconds += used.ru_utime + used.ru_stime
        memory = max(memory, used.ru_maxrss << 10)
    return Readers(seconds, memory, crashed, stuck)


def _load() -> None:
    """Load for all forks what a reader would load itself, and start no thread: forks have none."""
    import duckdb  # noqa: F401
    import fastexcel  # noqa: F401
    import pyarrow as pa
    import pyarrow.compute
    import pyreadstat  # noqa: F401

    from pegsynth.tables.foreign import duck, excel, serve, statistics_files  # noqa: F401

    # Its first array has PyArrow load pandas, which takes longer than any small file.
    pa.array([0.0])
    # Else the first collection of every reader would copy the pages of all these libraries.
    gc.collect()
    gc.freeze()


def _become(handles: list[int], asking: socket.socket) -> None:
    from pegsynth.tables.foreign import serve

    status = 1
    try:
        asking.close()
        os.dup2(handles[0], 0)
        os.dup2(handles[1], 1)
        os.closerange(3, 256)
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        status = serve.main()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
