"""Run cases, and compare what they write with what is kept.

``python -m checks.golden`` ends with status 1 if an output differs, is missing or is new.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fnmatch
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from checks.golden import snapshots
from checks.golden.cases import CASES
from checks.golden.normal import hashes
from pegsynth.privacy import program

HERE = Path(__file__).parent
HASHES = HERE / "hashes.json"
SURROUNDINGS = {"TZ": "UTC", "COLUMNS": "80", "NO_COLOR": "1", "SOURCE_DATE_EPOCH": "1700000000"}
"""What the program may take from its surroundings."""

Hashes = dict[str, str]


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """Let the program see the same surroundings on every machine and at every commit.

    Documents name the commit of the program, so every commit would change most of them.
    """
    with (
        mock.patch.dict(os.environ, SURROUNDINGS),
        mock.patch.object(program, "_of_build", return_value=("0" * 40, False)),
    ):
        program.this_program.cache_clear()
        try:
            yield
        finally:
            program.this_program.cache_clear()


@dataclass(frozen=True)
class Done:
    """What a case wrote, or why it broke off."""

    case: str
    hashes: Hashes = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0


def run_case(case: str, folder: Path, made: Callable[[], None] | None = None) -> Done:
    """Run one case in an empty folder of its own below `folder`."""
    place = folder / case
    (place / "in").mkdir(parents=True)
    start = time.perf_counter()
    try:
        with surroundings(), contextlib.chdir(place):
            (made or CASES[case])()
        return Done(case, hashes(place), seconds=time.perf_counter() - start)
    except Exception:  # noqa: BLE001
        return Done(case, error=traceback.format_exc())


def run_cases(cases: Sequence[str], folder: Path, *, processes: int = 2) -> Iterable[Done]:
    """Run cases in several processes; yield each when it is done."""
    with multiprocessing.get_context("spawn").Pool(processes) as workers:
        pending = [workers.apply_async(run_case, (case, folder)) for case in cases]
        for each in pending:
            yield each.get()


def differences(kept: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Name each output that differs, is missing or is new."""
    lines = []
    for name in sorted({*kept, *found}):
        if name not in found:
            lines.append(f"{name}: is no longer written")
        elif name not in kept:
            lines.append(f"{name}: is new")
        elif kept[name] != found[name]:
            lines.append(f"{name}: differs")
    return lines


def _compare_text(path: Path, text: str) -> bool:
    kept = path.read_text() if path.exists() else ""
    print(
        *difflib.unified_diff(
            kept.splitlines(), text.splitlines(), path.name, "now", lineterm="", n=1
        ),
        sep="\n",
        end="\n" if kept != text else "",
    )
    return kept == text


def _chosen(pattern: str) -> list[str]:
    return [case for case in CASES if fnmatch.fnmatch(case, pattern)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="checks.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what is written now")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, such as 'read-*'")
    parser.add_argument("--show", metavar="CASE", help="keep the outputs of cases, to be compared")
    parser.add_argument("--folder", type=Path, help="where --show puts them [default: golden-out]")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--times", action="store_true", help="print how long each case takes")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, compare or keep; return the exit status."""
    options = _parser().parse_args(arguments)
    pattern = options.show or options.only
    cases = _chosen(pattern)
    if not cases:
        print(f"no case is called {pattern}; there are {', '.join(CASES)}")
        return 2
    everything: dict[str, Hashes] = json.loads(HASHES.read_text()) if HASHES.exists() else {}
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path("golden-out")) if options.show else Path(scratch)
        for done in run_cases(cases, folder.absolute(), processes=options.processes):
            if options.times:
                print(f"{done.seconds:6.1f} s  {done.case}", flush=True)
            if done.error:
                good = False
                print(f"{done.case}: broke off\n{done.error}", flush=True)
            elif options.write:
                everything[done.case] = done.hashes
            else:
                for line in differences(everything.get(done.case, {}), done.hashes):
                    good = False
                    print(f"{done.case}: {line}", flush=True)
    if pattern == "*":
        good &= _finish(everything, write=options.write)
    if options.write and good:
        _write(everything)
    return 0 if good else 1


def _finish(everything: dict[str, Hashes], *, write: bool) -> bool:
    """Compare or write the snapshots, and look for cases that are gone."""
    good = True
    for case in sorted(set(everything) - set(CASES)):
        if write:
            del everything[case]
        else:
            good = False
            print(f"{case}: the case is gone")
    with surroundings():
        texts = (("names.txt", snapshots.names()), ("help.txt", snapshots.helps()))
    for name, text in texts:
        if write:
            (HERE / name).write_text(text)
        else:
            good &= _compare_text(HERE / name, text)
    return good


def _write(everything: Mapping[str, Hashes]) -> None:
    kept = {case: everything[case] for case in CASES if case in everything}
    HASHES.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
