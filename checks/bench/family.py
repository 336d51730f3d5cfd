"""Accuracy over a family of tables: ``python -m checks.bench.family``.

For every table and epsilon, at delta = 1e-9 and with as many rows out as in: the mean total
variations of all columns, pairs and 100 triples, the area under the curve of a classifier and
the error of logistic coefficients; "told" is the mean over pairs of which one column tells the
other, such as nested codes (nan: there are none). All of it for `pegs-once`, for noisy one-way
counts that get the whole budget ("DPind"), for independent columns without noise and for a
bootstrap. Releases are unseeded; figures are means of runs. A cell whose pair error lies above
that of DPind is marked ``>``, and ``>>`` where the difference is larger than twice its
standard error.

``TUNING`` are the tables that constants may be chosen on, ``CONFIRMING`` are kept apart; both are
printed. ``--try`` compares settings of `Steps` on the tuning tables, and says for every table
which setting the other tables would have chosen and what that gives on the one left out::

    python -m checks.bench.family --tables panel census --epsilons 0.1 1 --runs 3 --no-auc
    python -m checks.bench.family --tables tuning --try "" --try "pulled=0.5, rounds=80"

``--keep FILE`` writes every run down as it ends. The same command takes up where a stopped one
left off, and with more ``--runs`` adds to what is there; name another file after a change.
"""

from __future__ import annotations

import argparse
import ast
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checks.bench.distances import tvd1, tvd2, tvd3
from checks.bench.peers.scores import auc, logit_error
from checks.bench.peers.tables import Codes, NoDataError, Table, data_folder, load
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.plan_model import margin_weights
from pegsynth.methods.released._budget import Care, Steps
from pegsynth.methods.released._draw import draw_rows
from pegsynth.methods.released._estimates import on_simplex
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._values import Domain
from pegsynth.privacy import Budget
from pegsynth.privacy.conversion import rho_at
from pegsynth.random import RandomStream

Float64 = NDArray[np.float64]

DELTA = 1e-9
TUNING = (
    *("panel", "census", "census-few", "hundred", "drugs", "stays-few", "codes"),
    *("adult", "discharge-like", "yrbss", "mplsstops", "gss_abortion", "labsup", "happiness"),
)
"""Constants may be chosen on these."""
CONFIRMING = (
    *("panel-2", "survey-2", "survey-few-2", "sixty-2", "drugs-2", "codes-2"),
    *("discharge", "military", "tv16", "caravan", "randhie", "rwm5yr"),
)
"""No constant may be chosen on these."""
EPSILONS = (0.1, 1.0, 10.0)
SCORES = ("tvd1", "tvd2", "tvd3", "auc", "logit", "told")

_VARIED = 0.95
_FIRST_LOOK = 2_000

Scores = dict[str, float]


@dataclass(frozen=True)
class Cell:
    """What came out of a table at one epsilon, run by run."""

    table: str
    epsilon: float
    ours: list[Scores]
    noisy: list[Scores]

    def mark(self) -> str:
        """Say whether pairs are worse than those of noisy one-way counts."""
        first, second = ([each["tvd2"] for each in runs] for runs in (self.ours, self.noisy))
        apart = mean(first) - mean(second)
        if apart <= 0:
            return ""
        if min(len(first), len(second)) < 2:
            return ">"
        error = (stdev(first) ** 2 / len(first) + stdev(second) ** 2 / len(second)) ** 0.5
        return ">>" if apart > 2 * error else ">"


def scores(table: Table, rows: Codes, *, with_auc: bool) -> Scores:
    """Compare rows with those that were learned from."""
    levels = table.levels
    return {
        "tvd1": tvd1(table.train, rows, levels),
        "tvd2": tvd2(table.train, rows, levels, threads=2),
        "tvd3": tvd3(table.train, rows, levels, threads=2),
        "auc": auc(table, rows) if with_auc else float("nan"),
        "logit": logit_error(table, rows),
        "told": _error_of_told(table, rows),
    }


@cache
def _told(name: str) -> list[tuple[int, int]]:
    return list(_told_pairs(_table(name)))


def _told_pairs(table: Table) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns that vary, one of which tells the other in every row."""
    often = np.array([np.bincount(column).max() / len(column) for column in table.train.T])
    varied = np.flatnonzero(often < _VARIED).tolist()
    for rows in (table.train[:_FIRST_LOOK], table.train):
        found = []
        for first, second in combinations(varied, 2):
            cells = len(np.unique(_pair_keys(table, rows, first, second)))
            if cells == max(len(np.unique(rows[:, each])) for each in (first, second)):
                found.append((first, second))
        varied = sorted({each for pair in found for each in pair})
    yield from found


def _pair_keys(table: Table, rows: Codes, first: int, second: int) -> NDArray[np.int64]:
    size = table.levels[second]
    keys: NDArray[np.int64] = rows[:, first].astype(np.int64) * size + rows[:, second]
    return keys


def _error_of_told(table: Table, rows: Codes) -> float:
    pairs = _told(table.name)
    errors = []
    for first, second in pairs:
        cells = table.levels[first] * table.levels[second]
        counts = (
            np.bincount(_pair_keys(table, each, first, second), minlength=cells) / len(each)
            for each in (table.train, rows)
        )
        errors.append(float(np.abs(np.subtract(*counts)).sum()) / 2)
    return mean(errors) if errors else float("nan")


def noisy_independence(table: Table, epsilon: float) -> Codes:
    """Draw independent columns from noisy one-way counts that got the whole budget."""
    generator = np.random.default_rng()
    rho = float(rho_at(epsilon, delta=DELTA))
    deviations = (2 * rho * margin_weights(table.levels)) ** -0.5
    shares = []
    for counts, deviation in zip(_counts(table), deviations, strict=True):
        noisy = counts + generator.normal(0, deviation, len(counts))
        shares.append(on_simplex(noisy, 1.0, max(float(noisy.sum()), 1.0)))
    return _independent(shares, len(table.train), generator)


def exact_independence(table: Table) -> Codes:
    """Draw independent columns from the counts as they are."""
    shares = [counts.astype(np.float64) for counts in _counts(table)]
    return _independent(shares, len(table.train), np.random.default_rng())


def bootstrap(table: Table) -> Codes:
    """Draw rows of the original with replacement."""
    generator = np.random.default_rng()
    return table.train[generator.integers(0, len(table.train), len(table.train))]


def _counts(table: Table) -> list[NDArray[np.int64]]:
    pairs = zip(table.train.T, table.levels, strict=True)
    return [np.bincount(column, minlength=size) for column, size in pairs]


def _independent(shares: Sequence[Float64], rows: int, generator: np.random.Generator) -> Codes:
    drawn = [generator.choice(len(line), rows, p=line / line.sum()) for line in shares]
    return np.stack(drawn, axis=1).astype(np.uint32)


@cache
def _table(name: str) -> Table:
    return load(name, data_folder())


def one_release(table: Table, epsilon: float, seed: int | None, steps: Steps) -> Codes:
    """Release blocks of a table once and draw as many rows."""
    stream = RandomStream(seed)
    budget_filter = PrivacyFilter(
        Budget(epsilon=epsilon, delta=DELTA).whole("zcdp"), stream, threads=2
    )
    rows = len(table.train)
    released, fit = release_blocks(
        table.train,
        Domain(tuple(table.levels), (True,) * len(table.levels)),
        budget_filter,
        Work(stream, threads=2, steps=steps),
        rows=rows,
    )
    return np.concatenate(list(draw_rows(released, rows, stream, steps=steps, ready=fit)))


def run_ours(table: Table, epsilon: float, steps: Steps, *, with_auc: bool) -> Scores:
    """Release once, and score; processor seconds are of the release and its rows alone."""
    start = time.process_time()
    rows = one_release(table, epsilon, None, steps)
    seconds = time.process_time() - start
    return scores(table, rows, with_auc=with_auc) | {"seconds": seconds}


@dataclass(frozen=True)
class Kept:
    """Runs that were written down, a line of JSON for each.

    Parameters
    ----------
    path
        The file; without it nothing is kept.
    settings
        What else the runs depend on.
    """

    path: Path | None = None
    settings: str = ""

    def runs(
        self, table: str, epsilon: float, kind: str, count: int, run: Callable[[], Scores]
    ) -> list[Scores]:
        """Return so many runs: those that are there, and new ones."""
        name = [table, epsilon, kind, self.settings]
        found = [scores for key, scores in self._lines() if key == name][:count]
        while len(found) < count:
            found.append(run())
            if self.path is not None:
                # A line of its own, even where a stopped run left half of one.
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("\n" + json.dumps([name, found[-1]]) + "\n")
        return found

    def _lines(self) -> Iterator[tuple[list[Any], Scores]]:
        if self.path is None or not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                key, scores = json.loads(line)
            except ValueError:
                continue
            yield key, scores


def measured(
    names: Sequence[str],
    epsilons: Sequence[float],
    runs: int,
    steps: Steps,
    *,
    with_auc: bool,
    kept: Kept | None = None,
) -> Iterator[Cell]:
    """Measure ours and noisy one-way counts, cell by cell."""
    kept = kept or Kept()
    for name in names:
        table = _table(name)
        ready = False

        def ours(epsilon: float, table: Table = table) -> Scores:
            nonlocal ready
            if not ready:
                # Kernels are compiled or loaded by a release that is not timed.
                one_release(_first_rows(table, 1_000), 1.0, None, steps)
                ready = True
            return run_ours(table, epsilon, steps, with_auc=with_auc)

        def noisy(epsilon: float, table: Table = table) -> Scores:
            return scores(table, noisy_independence(table, epsilon), with_auc=False)

        for epsilon in epsilons:
            kind = "ours" if with_auc else "ours, no auc"
            yield Cell(
                name,
                epsilon,
                kept.runs(name, epsilon, kind, runs, partial(ours, epsilon)),
                kept.runs(name, epsilon, "DPind", max(runs, 2), partial(noisy, epsilon)),
            )


def _first_rows(table: Table, rows: int) -> Table:
    return replace(table, train=table.train[:rows])


def page(options: argparse.Namespace, steps: Steps) -> None:
    """Print a table of everything, the tuning tables and the others apart."""
    for title, group in (("Tuning", TUNING), ("Confirming", CONFIRMING)):
        names = [name for name in options.tables if name in group]
        if not names:
            continue
        print(f"\n## {title} tables\n")
        print(
            f"delta {DELTA:g}, {options.runs} unseeded runs each, steps: {options.steps or '-'}\n"
        )
        print(
            f"| table | eps | {' | '.join(SCORES)} | CPU s | DPind tvd2 | worse | "
            "independence tvd2 | bootstrap tvd2 / tvd3 / auc / logit |\n" + "|---" * 13 + "|"
        )
        cells = []
        for name in names:
            table = _table(name)
            kept = Kept(options.keep, options.steps)
            alone, floor = (
                _once(kept, table, "independence", exact_independence, with_auc=False)["tvd2"],
                _once(kept, table, "bootstrap", bootstrap, with_auc=options.auc),
            )
            floors = " / ".join(f"{floor[key]:.4f}" for key in SCORES[1:5])
            for cell in measured(
                [name], options.epsilons, options.runs, steps, with_auc=options.auc, kept=kept
            ):
                cells.append(cell)
                means = {key: mean(each[key] for each in cell.ours) for key in cell.ours[0]}
                shown = " | ".join(f"{means[key]:.4f}" for key in SCORES)
                noisy = mean(each["tvd2"] for each in cell.noisy)
                print(
                    f"| {name} {len(table.train):,} x {len(table.levels)} | {cell.epsilon:g} | "
                    f"{shown} | {means['seconds']:.1f} | {noisy:.4f} | {cell.mark()} | "
                    f"{alone:.4f} | {floors} |",
                    flush=True,
                )
        _print_summary(title, cells)


def _once(
    kept: Kept, table: Table, kind: str, make: Callable[[Table], Codes], *, with_auc: bool
) -> Scores:
    """Score rows that no budget was spent on, one time."""
    kind += "" if with_auc else ", no auc"
    (found,) = kept.runs(
        table.name, 0.0, kind, 1, lambda: scores(table, make(table), with_auc=with_auc)
    )
    return found


def _print_summary(title: str, cells: Sequence[Cell]) -> None:
    marks = [cell.mark() for cell in cells]
    worse, surely = sum(map(bool, marks)), marks.count(">>")
    print(
        f"\n{title}: {worse} of {len(cells)} cells worse than noisy one-way counts, {surely} of "
        f"them by more than chance; geometric mean of tvd2 {_geometric(cells, 'tvd2'):.4f}, of "
        f"tvd3 {_geometric(cells, 'tvd3'):.4f}, of logit errors {_geometric(cells, 'logit'):.4f}",
        flush=True,
    )


def _geometric(cells: Sequence[Cell], key: str) -> float:
    logs = [np.log(max(mean(each[key] for each in cell.ours), 1e-6)) for cell in cells]
    return float(np.exp(np.mean(logs)))


def compare(options: argparse.Namespace, variants: Mapping[str, Steps]) -> None:
    """Try several settings; say which one all tables but one would choose, and what it gives."""
    names = [name for name in options.tables if name in TUNING]
    logs = np.zeros((len(variants), len(names)))
    print("\n| steps | eps | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
    for row, (text, steps) in enumerate(variants.items()):
        cells = list(measured(names, options.epsilons, options.runs, steps, with_auc=options.auc))
        for epsilon in options.epsilons:
            found = [
                mean(run[options.score] for run in cell.ours)
                for cell in cells
                if cell.epsilon == epsilon
            ]
            logs[row] += np.log(np.maximum(found, 1e-6)) / len(options.epsilons)
            shown = " | ".join(f"{value:.4f}" for value in found)
            print(f"| {text or '(as they are)'} | {epsilon:g} | {shown} |", flush=True)
    print(f"\nGeometric means of {options.score}, relative to the first setting:")
    texts = [text or "(as they are)" for text in variants]
    for text, line in zip(texts, np.exp(logs.mean(axis=1) - logs[0].mean()), strict=True):
        print(f"  {line:.4f}  {text}")
    print("Left out, what the other tables choose, and what that gives there:")
    for place, name in enumerate(names):
        others = np.delete(logs, place, axis=1).sum(axis=1)
        best = int(np.argmin(others))
        gain = np.exp(logs[best, place] - logs[0, place])
        print(f"  {name}: {texts[best]}: {gain:.4f}")


def _steps(text: str) -> Steps:
    """Return `Steps` with some figures replaced: ``rounds=80, pulled=0.5``."""
    call = ast.parse(f"dict({text})", mode="eval").body
    given: dict[str, Any] = {
        each.arg: ast.literal_eval(each.value)
        for each in call.keywords  # type: ignore[attr-defined]
    }
    care = {name: given.pop(name) for name in list(given) if name in Care.__dataclass_fields__}
    return replace(Steps(), care=replace(Care(), **care), **given)


def _present(names: Sequence[str]) -> list[str]:
    wanted: list[str] = []
    for name in names:
        wanted += {"all": TUNING + CONFIRMING, "tuning": TUNING, "confirming": CONFIRMING}.get(
            name, (name,)
        )
    found = []
    for name in wanted:
        try:
            _table(name)
        except NoDataError as error:
            print(f"passed over: {name}: {error}", flush=True)
        else:
            found.append(name)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print it as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = ("all", "tuning", "confirming", *TUNING, *CONFIRMING)
    add = parser.add_argument
    add(
        "--tables",
        nargs="+",
        default=["all"],
        choices=every,
        metavar="TABLE",
        help=", ".join(every),
    )
    add("--epsilons", nargs="+", type=float, default=EPSILONS)
    add("--runs", type=int, default=3)
    add("--steps", default="", metavar="SETTINGS", help='such as "rounds=80, pulled=0.5"')
    add("--try", dest="variants", action="append", default=[], metavar="SETTINGS")
    add("--score", choices=SCORES, default="tvd2", help="what --try compares")
    add("--keep", type=Path, metavar="FILE", help="where runs are written down as they end")
    add("--no-auc", dest="auc", action="store_false", help="leave out the classifier")
    options = parser.parse_args(arguments)
    options.tables = _present(options.tables)
    if options.variants:
        compare(options, {text: _steps(text) for text in options.variants})
    else:
        page(options, _steps(options.steps))


if __name__ == "__main__":
    main()
