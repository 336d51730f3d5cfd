"""Every synthesizer of the benchmark, as a program with settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

PROGRAMS = Path(__file__).parent / "programs"
EPSILONS = (1.0, 0.1, 10.0)
DELTA = 1e-9

Group = Literal["baseline", "ours", "peer"]
Price = Literal["epsilon and delta", "epsilon", "none"]


@dataclass(frozen=True)
class Tool:
    """One synthesizer with its settings.

    Parameters
    ----------
    name, title
        What the command line and the tables call it.
    environment
        Key of `environments.REQUIREMENTS`; "" for our own.
    program
        Script that is run in it.
    settings
        Handed to the program as they are.
    price
        What its budget consists of.
    threads
        Threads it may use; one also means one processor.
    note
        What a reader of the table should know.
    """

    name: str
    title: str
    group: Group
    environment: str
    program: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    price: Price = "epsilon and delta"
    repeats: int = 2
    threads: int = 1
    note: str = ""

    @property
    def epsilons(self) -> tuple[float | None, ...]:
        """Total budgets to measure; one run without any where it takes none."""
        return (None,) if self.price == "none" else EPSILONS

    @property
    def delta(self) -> float | None:
        """The delta of its budget."""
        return DELTA if self.price == "epsilon and delta" else None


def _baseline(name: str, title: str, price: Price, note: str) -> Tool:
    program = PROGRAMS / "run_baseline.py"
    return Tool(name, title, "baseline", "", program, {"method": name}, price, note=note)


def ours(method: str) -> tuple[Tool, Tool]:
    """Return one of our methods, in process with warm kernels and as a command."""
    program = PROGRAMS / "run_pegsynth.py"
    warm = (
        "in process, kernels loaded by a run on a few rows, 2 threads; fit and sample are one call"
    )
    cold = "`pegs synthesize` from Parquet to Parquet, start of Python included"
    return (
        Tool(
            method,
            f"pegsynth {method}",
            "ours",
            "",
            program,
            {"method": method},
            repeats=5,
            threads=2,
            note=warm,
        ),
        Tool(
            f"{method}-command",
            f"pegsynth {method}, command",
            "ours",
            "",
            program,
            {"method": method, "command": True},
            repeats=2,
            threads=2,
            note=cold,
        ),
    )


def _dpmm(name: str, title: str, method: str, *, note: str = "", **settings: Any) -> Tool:
    program, told = PROGRAMS / "run_dpmm.py", {"method": method, **settings}
    return Tool(name, f"{title}, dpmm", "peer", "dpmm", program, told, note=note)


def _opendp(name: str, title: str, method: str, *, note: str = "") -> Tool:
    return Tool(
        name,
        f"{title}, OpenDP",
        "peer",
        "opendp",
        PROGRAMS / "run_opendp.py",
        {"method": method},
        note="`extras.mbi`, its defaults, on the newest mbi that it takes; rows by `sample`, which "
        "needs pandas without saying so" + note,
    )


ABSENT = {
    "mbi 2.0.0": "the package has estimation and no mechanism: its AIM and MST are scripts of the "
    "repository, which no index has; OpenDP and smartnoise-synth bring theirs",
    "dpmm 0.2": "not on the package index, whose newest is 0.1.9",
    "dpsynth (SWIFT, AIM, MST)": "not on the package index: installs from its repository only",
    "MargNet, AIM+GReM, ResidualPlanner+": "no package",
}
"""Who is not measured, and why: as of 2026-11."""


# The size limit is that of dpmm's own model class; its pipeline would lift it.
_AIM_LIMIT = 80

_ALL = (
    _baseline("bootstrap", "bootstrap", "none", "rows of the original with replacement"),
    _baseline("independent", "independent marginals", "none", "each column by itself, exact"),
    _baseline(
        "dp-independent",
        "DP independent columns",
        "epsilon and delta",
        "Gaussian noise on the one-ways, levels^(2/3) of the budget each, projected",
    ),
    *ours("pegs-once"),
    *ours("pegs-capped"),
    _dpmm("mst", "MST", "mst"),
    _dpmm(
        "aim-short",
        "AIM (short)",
        "aim",
        note="3 rounds per column instead of 16, 200 iterations instead of 1000",
        max_model_size=_AIM_LIMIT,
        rounds_per_column=3,
        n_iters=200,
    ),
    _dpmm("aim", "AIM (default)", "aim", max_model_size=_AIM_LIMIT),
    _dpmm("privbayes", "PrivBayes, one parent", "priv-bayes", note="its default"),
    _dpmm("privbayes-2", "PrivBayes, two parents", "priv-bayes", degree=3),
    Tool(
        "smartnoise-mst",
        "MST, smartnoise-synth",
        "peer",
        "smartnoise",
        PROGRAMS / "run_smartnoise.py",
        {"method": "mst"},
        note="rows by mbi's method `sample`: the default of mbi 1.1.0 makes columns with the same "
        "parent depend on each other (mended since, mbi pull request 145)",
    ),
    _opendp(
        "opendp-mst",
        "MST",
        "mst",
        note="; it refuses some tables, because its own parts add up to a rounding error more than "
        "the budget, whichever of four budgets a hair apart it gets",
    ),
    _opendp("opendp-aim", "AIM", "aim"),
    Tool(
        "datasynthesizer",
        "DataSynthesizer, one parent",
        "peer",
        "datasynthesizer",
        PROGRAMS / "run_datasynthesizer.py",
        {"parents": 1},
        "epsilon",
        note="its epsilon as stated; its issue 34 doubts the sensitivity",
    ),
    Tool(
        "sdv",
        "Gaussian copula, sdv",
        "peer",
        "sdv",
        PROGRAMS / "run_sdv.py",
        {},
        "none",
        note="no privacy guarantee",
    ),
)

TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}
