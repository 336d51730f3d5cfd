"""How much work a study is: rows, repeats and the grids of its axes."""

from __future__ import annotations

from dataclasses import dataclass

EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
"""The paper's privacy parameters, per synthetic row."""


@dataclass(frozen=True)
class StudySize:
    """The size of a study.

    Parameters
    ----------
    name
        Names it in results.
    rows_in
        Rows N of the built-in table.
    rows
        Synthetic rows of every table; the paper's 1,000.
    repeats, other_repeats
        Tables of each arm at each level: the paper's arms, and all others.
    pool_rows, fresh_rows
        Rows of the public pool and of the hold-out.
    model_rows
        Most rows that imputation models are fitted to.
    epsilons
        Per synthetic row, and again as totals.
    levels
        l of l-diversity.
    chains, blocks
        Lengths of chains, and sizes of blocks, that are compared.
    sweeps
        Sweeps after which the seed row should be forgotten.
    other_rows_in
        Other N at which the paper's arms are repeated.
    methods
        Methods beside the paper's three; empty for all there are.
    deltas
        Beside total epsilons; None is a pure guarantee.
    figures
        Names of the figures to draw; empty for all.
    """

    name: str
    rows_in: int
    rows: int = 1_000
    repeats: int = 20
    other_repeats: int = 10
    pool_rows: int = 20_000
    fresh_rows: int = 20_000
    model_rows: int = 50_000
    epsilons: tuple[float, ...] = EPSILONS
    levels: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 12.0, 16.0)
    chains: tuple[int, ...] = (1, 10, 50, 100, 500)
    blocks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    sweeps: tuple[int, ...] = (1, 2, 5, 10, 20)
    other_rows_in: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    deltas: tuple[float | None, ...] = (None,)
    figures: tuple[str, ...] = ()


FULL = StudySize(
    "full",
    50_000,
    repeats=100,
    other_repeats=20,
    other_rows_in=(10_000, 250_000),
    deltas=(None, 1e-9),
)
QUICK = StudySize(
    "quick", 20_000, repeats=6, other_repeats=3, model_rows=10_000, other_rows_in=(100_000,)
)
TINY = StudySize(
    "tiny",
    400,
    rows=60,
    repeats=3,
    other_repeats=2,
    pool_rows=300,
    fresh_rows=300,
    model_rows=200,
    epsilons=(0.1, 10.0, 100.0),
    levels=(1.0, 2.0),
    chains=(1, 20),
    blocks=(1, 10),
    sweeps=(1, 3),
    other_rows_in=(800,),
    methods=("bootstrap", "marginal"),
    figures=("figure-3-reset", "ru-marginals"),
)
