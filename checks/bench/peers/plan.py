"""What is run, in which order: the comparisons that matter most first, then all again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checks.bench.peers.execute import build_of
from checks.bench.peers.results import Key
from checks.bench.peers.tools import TOOLS, Tool

STAGES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("bootstrap", "independent", "dp-independent", "pegs-once", "pegs-once-command"),
        ("adult", "discharge-like", "discharge", "yrbss", "mplsstops", "military"),
    ),
    (("mst", "aim-short"), ("adult",)),
    (("mst", "aim-short"), ("discharge-like",)),
    (("privbayes", "privbayes-2"), ("adult", "discharge-like")),
    (("mst", "aim-short", "privbayes", "privbayes-2"), ("discharge",)),
    (("smartnoise-mst", "datasynthesizer", "sdv"), ("adult", "discharge-like", "discharge")),
    (("aim",), ("adult", "discharge-like", "discharge")),
    (("mst", "aim-short"), ("yrbss", "mplsstops", "military")),
    (("bootstrap", "dp-independent", "pegs-once"), ("panel", "census", "drugs", "hundred")),
    (("opendp-mst", "opendp-aim"), ("panel", "adult", "discharge-like")),
)
"""Tools and tables. A tool of ours that does not exist yet is passed over by `run`."""


def planned(
    tools: Sequence[str], tables: Sequence[str], epsilons: Sequence[float] | None
) -> Iterator[tuple[Tool, Key]]:
    """Yield every run that was asked for: first repeats first, in the order of `STAGES`.

    Parameters
    ----------
    tools, tables
        Names; none means all that `STAGES` mentions. A tool or table that is named is
        measured on all tables, or by all tools, that `STAGES` pairs it with, and a named
        pair always.
    epsilons
        Total budgets; None for all. Tools without a budget are run in any case.
    """
    pairs = [
        (tool, table)
        for stage_tools, stage_tables in STAGES
        for table in stage_tables
        for tool in stage_tools
        if (not tools or tool in tools) and (not tables or table in tables)
    ]
    if tools and tables:
        pairs += [(a, b) for a in tools for b in tables if (a, b) not in pairs]
    builds = {name: build_of(TOOLS[name]) for name, _ in pairs}
    most = max((TOOLS[name].repeats for name, _ in pairs), default=0)
    for repeat in range(most):
        for name, table in pairs:
            tool = TOOLS[name]
            if repeat >= tool.repeats:
                continue
            for epsilon in tool.epsilons:
                if epsilon is None or epsilons is None or epsilon in epsilons:
                    yield tool, Key(table, name, epsilon, repeat, builds[name])
