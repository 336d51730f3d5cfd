"""Measure and write ``checks/bench/RESULTS.md``: ``python -m checks.bench.peers.run``.

Results are kept as they come, so an interrupted benchmark goes on where it stopped.
``--timing`` compares times on a machine that is otherwise idle: ours and the tools named
by ``--only`` in turn, always anew.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from checks.bench.peers.bench import Bench, run_all, timed
from checks.bench.peers.environments import environments_folder
from checks.bench.peers.execute import Clock, Setting
from checks.bench.peers.report import beside_others, markdown
from checks.bench.peers.results import Store
from checks.bench.peers.tables import TABLES
from checks.bench.peers.tools import TOOLS

REPORT = Path(__file__).parent.parent / "RESULTS.md"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    clock: Clock = "wall" if options.timing else options.clock
    setting = Setting(options.output, environments_folder(), options.cap, clock)
    store = Store(options.output / "results.jsonl")
    bench = Bench(store, setting, retry=options.retry)
    if options.rescore:
        bench.rescore()
    elif not options.report_only:
        work = timed if options.timing else run_all
        work(bench, options.only, options.data, options.epsilon)
    earlier = options.report.read_text(encoding="utf-8") if options.report.exists() else ""
    page = beside_others(markdown(store.load().values()), earlier)
    options.report.write_text(page, encoding="utf-8")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="checks.bench.peers.run", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", default=[], choices=TOOLS, metavar="TOOL", help=", ".join(TOOLS))
    add("--data", nargs="+", default=[], metavar="TABLE", help=", ".join(TABLES))
    add("--epsilon", nargs="+", type=float, help="total budgets; all of them by default")
    add("--cap", type=float, default=600.0, help="seconds that a run may take")
    add("--clock", choices=("processor", "wall"), default="processor", help="what the cap counts")
    add("--timing", action="store_true", help="compare times on an idle machine")
    add("--retry", nargs="+", default=[], choices=("failed", "over"), help="run these again")
    add("--rescore", action="store_true", help="score all kept rows again and run nothing")
    add("--report-only", action="store_true", help="write the page and run nothing")
    add("--output", type=Path, default=Path("bench-out/peers"), help="folder of results and logs")
    add("--report", type=Path, default=REPORT, help="page to write")
    options = parser.parse_args(arguments)
    for name in options.data:
        if name.partition(":")[0] not in TABLES:
            parser.error(f"{name!r} is not one of {', '.join(TABLES)}")
    return options


if __name__ == "__main__":
    # So that the program that is running ends with the benchmark.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
