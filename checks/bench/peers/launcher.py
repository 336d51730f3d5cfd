"""Runs a program under a cap: ``python -S launcher.py REPORT CAP CLOCK PIN COMMAND ..``.

A small process of its own, so that the memory recorded for the program does not begin with
that of the benchmark. The program leads a process group; when the cap is reached the whole
group is killed. REPORT becomes a JSON file: exit status, whether the cap was reached, wall
and processor seconds, and the most memory that one process of the program held.

CLOCK is ``wall``, or ``processor`` for the processor time of the group: what an otherwise
idle machine would need, whatever else runs on this one. PIN is 1 to use one processor.
"""

import contextlib
import json
import os
import signal
import sys
import time

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two looks at the program, which grow with the time it has run."""
MOST_WAIT = 20
"""With the clock ``processor``, the wall time that ends a run anyway, in caps."""


def processor_seconds(group: int) -> float:
    """Sum the processor time of all processes of a group and their finished children."""
    ticks = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                # The second field is the program's name in brackets and may hold anything.
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def kill(group: int) -> None:
    """End every process of a group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    report, cap, clock, pin, *command = sys.argv[1:]
    limit = float(cap)
    by_processor = clock == "processor" and os.path.isdir("/proc/self")
    if pin == "1" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, setpgroup=0)

    # Whoever ends this process wants the program ended too.
    def give_up(_number: int, _frame: object) -> None:
        kill(child)
        os._exit(1)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, give_up)
    over, pause = False, FIRST_PAUSE
    while True:
        done, status, usage = os.wait4(child, 0 if over else os.WNOHANG)
        if done:
            break
        wall = time.perf_counter() - start
        spent = processor_seconds(child) if by_processor else wall
        over = spent > limit or wall > limit * MOST_WAIT
        if over:
            kill(child)
        else:
            time.sleep(pause)
            pause = min(1.1 * pause, LONGEST_PAUSE)
    wall = time.perf_counter() - start
    kill(child)
    found = {
        "status": os.waitstatus_to_exitcode(status),
        "over": over,
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    with open(report, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
