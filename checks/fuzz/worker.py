"""A process that runs cases one after the other and says of each what came of it.

Lines ``TARGET FIRST END SEED`` come in on standard input; JSON lines go out on the handle that
was given: a number before a case starts, its verdict when it has ended.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

from checks.fuzz import oracle
from checks.fuzz.cases import prepare, run_case, source_of
from checks.fuzz.forked import Forker
from checks.fuzz.targets import TARGETS
from pegsynth.tables import foreign_read

_HEADROOM = 8 << 30


def main(handle: int, root: Path) -> None:
    """Serve until standard input ends."""
    warnings.simplefilter("error")
    tempfile.tempdir = str(root.parent)
    prepare(root)
    # What is loaded by now stays; else it would be searched through again and again.
    gc.freeze()
    _limit()
    with Forker() as forker, os.fdopen(handle, "w", buffering=1) as report:
        foreign_read.LAUNCH = forker.launch
        seen = oracle.watch()
        report.write(json.dumps({"ready": os.getpid()}) + "\n")
        for line in sys.stdin:
            target, first, end, seed = line.split()
            for number in range(int(first), int(end)):
                report.write(json.dumps({"start": number}) + "\n")
                case = TARGETS[target][1](source_of(int(seed), target, number), root)
                verdict = run_case(case, root, seen, forker.readers)
                content = {"done": number, "code": verdict.code, "seconds": verdict.seconds}
                if verdict.crashed:
                    content["crashed"] = verdict.crashed
                if verdict.faults:
                    content |= {"faults": verdict.faults, "detail": verdict.detail[-6000:]}
                report.write(json.dumps(content) + "\n")
            report.write(json.dumps({"end": int(end)}) + "\n")
    gc.unfreeze()


def _limit() -> None:
    """Let no case take the machine down; what it takes beyond 2 GiB is a finding anyway."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _HEADROOM
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
