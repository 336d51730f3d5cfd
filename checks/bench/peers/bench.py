"""Runs what was asked for and is not known yet.

`Bench` remembers every result; `run_all` goes through the plan and, where a tool is too
slow for a whole table, finds the widest part of it that the tool manages; `timed` compares
times on a machine that is otherwise idle.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import cache
from statistics import median

import numpy as np

from checks.bench.peers.environments import InstallError
from checks.bench.peers.execute import Setting, build_of, execute, rows_file
from checks.bench.peers.plan import planned
from checks.bench.peers.results import Key, Result, Status, Store
from checks.bench.peers.scores import score
from checks.bench.peers.tables import NoDataError, Table, data_folder, load
from checks.bench.peers.tools import TOOLS, Tool
from pegsynth.methods import names as method_names

TOO_SLOW = ("aim",)
"""Tools that are tried on narrower tables when the cap ends them."""
NARROWED_AT = 1.0
COMPARED = ("dp-independent", "pegs-once", "mst", "aim-short", "aim")
"""Who is compared on the widest table that such a tool manages."""
NARROWEST = 3

TIMED = ("pegs-once", "pegs-once-command")
TIMED_RUNS = 3


@cache
def _table(name: str) -> Table:
    return load(name, data_folder())


class Bench:
    """Runs tools and remembers what came out.

    Parameters
    ----------
    store
        Results of earlier runs, and where new ones go.
    retry
        Runs that ended in one of these ways are run again: "failed", "over".
    """

    def __init__(self, store: Store, setting: Setting, *, retry: Collection[Status] = ()) -> None:
        self._store = store
        self._setting = setting
        self._known = store.load()
        self._retry = retry
        self._impossible: set[str] = set()

    @property
    def known(self) -> dict[Key, Result]:
        """All results so far."""
        return dict(self._known)

    def table(self, name: str) -> Table:
        """Return a table of the benchmark."""
        return _table(name)

    def result(self, tool: Tool, key: Key) -> Result | None:
        """Return the result of a run, from memory or by running it.

        None where it makes no sense: the first of several runs was ended by the cap, the
        table or the tool is not there.
        """
        known = self._known.get(key)
        if known and known.status not in self._retry:
            return known
        if key.repeat and self._ended_by_the_cap(key):
            return None
        if _unknown_method(tool):
            self._pass_over(f"{tool.name}: this pegsynth has no such method")
            return None
        try:
            result = execute(tool, self.table(key.table), key, self._setting)
        except (NoDataError, InstallError) as error:
            self._pass_over(f"{key.table}, {tool.name}: {error}")
            return None
        self._keep(result)
        return result

    def rescore(self) -> None:
        """Score the kept rows of every run again, by the metrics as they are now."""
        for key, result in self.known.items():
            path = rows_file(key, self._setting.output)
            if result.status == "done" and path.exists():
                scores = score(self.table(key.table), np.load(path)["rows"])
                self._keep(replace(result, scores=asdict(scores)))

    def _keep(self, result: Result) -> None:
        self._store.add(result)
        self._known[result.key] = result
        print(line(result), flush=True)

    def _ended_by_the_cap(self, key: Key) -> bool:
        first = self._known.get(replace(key, repeat=0))
        return first is not None and first.status == "over"

    def _pass_over(self, why: str) -> None:
        if why not in self._impossible:
            self._impossible.add(why)
            print(f"passed over: {why}", flush=True)


def _unknown_method(tool: Tool) -> bool:
    return tool.group == "ours" and tool.settings["method"] not in method_names()


def line(result: Result) -> str:
    """Return one result as a line of a log."""
    key = result.key
    budget = "-" if key.epsilon is None else f"{key.epsilon:g}"
    scores = " ".join(f"{name} {value:.4f}" for name, value in result.scores.items())
    return (
        f"{time.strftime('%H:%M:%S')} {key.table} {key.tool} eps {budget} run {key.repeat}: "
        f"{result.status}, {result.wall:.0f} s (CPU {result.cpu:.0f}), "
        f"{result.peak_bytes / 2**20:.0f} MB {scores}"
    )


def run_all(
    bench: Bench, tools: Sequence[str], tables: Sequence[str], epsilons: Sequence[float] | None
) -> None:
    """Run everything that was asked for, in the order of the plan."""
    for tool, key in planned(tools, tables, epsilons):
        result = bench.result(tool, key)
        slow = result is not None and result.status == "over" and tool.name in TOO_SLOW
        if slow and key.epsilon == NARROWED_AT and ":" not in key.table:
            _compare_narrowed(bench, tool, key)


def _compare_narrowed(bench: Bench, tool: Tool, key: Key) -> None:
    width = widest(bench, tool, key)
    if width is None:
        return
    for other, narrow in planned(COMPARED, [f"{key.table}:{width}"], None):
        bench.result(other, narrow)


def widest(bench: Bench, tool: Tool, key: Key) -> int | None:
    """Find by bisection how many columns a tool manages within the cap; None: not even few.

    Parameters
    ----------
    key
        The run on the whole table, which the cap ended.
    """
    low, high = NARROWEST - 1, len(bench.table(key.table).domain)
    while high - low > 1:
        middle = (low + high) // 2
        narrow = replace(key, table=f"{key.table}:{middle}", repeat=0)
        result = bench.result(tool, narrow)
        if result is not None and result.status == "done":
            low = middle
        else:
            high = middle
    return low if low >= NARROWEST else None


def timed(
    bench: Bench, tools: Sequence[str], tables: Sequence[str], epsilons: Sequence[float] | None
) -> None:
    """Compare wall times: ours and the named tools in turn, ours again after each of them."""
    ours = [name for name in TIMED if not _unknown_method(TOOLS[name])]
    others = [name for name in tools if name not in ours]
    for table in tables or ("adult", "discharge-like"):
        for epsilon in epsilons or (1.0,):
            for name in [*ours * TIMED_RUNS, *(n for other in others for n in (other, *ours))]:
                bench.result(TOOLS[name], _next_key(bench, table, name, epsilon))
            _print_ratios(bench, table, epsilon, [*ours, *others])


def _next_key(bench: Bench, table: str, name: str, epsilon: float) -> Key:
    tool = TOOLS[name]
    budget = None if tool.price == "none" else epsilon
    key = Key(table, name, budget, 0, build_of(tool), "timing")
    while key in bench.known:
        key = replace(key, repeat=key.repeat + 1)
    return key


def _print_ratios(bench: Bench, table: str, epsilon: float, names: Sequence[str]) -> None:
    took = {}
    for name in names:
        build = build_of(TOOLS[name])
        runs = [
            (result.fit or 0) + (result.sample or 0)
            for key, result in bench.known.items()
            if (key.table, key.tool, key.build, key.purpose) == (table, name, build, "timing")
            and key.epsilon in (epsilon, None)
            and result.status == "done"
        ]
        if runs:
            took[name] = median(runs)
    reference = took.get(names[0]) if names else None
    for name, seconds in took.items():
        ratio = f", {seconds / reference:.0f} times {names[0]}" if reference else ""
        print(f"{table} eps {epsilon:g} {name}: fit + sample {seconds:.2f} s{ratio}", flush=True)
