"""The arms of the study: the paper's three methods under every seed pool, and all others.

A `Family` is a set of arms on one axis, with the levels at which they are drawn. Families
are what the figures and findings read: the paper's own comparison, the same under other
choices, and the axes that the paper lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pegsynth.methods import get, names
from studies.paper.arms import MAIN, Arm, Pool
from studies.paper.size import StudySize
from studies.paper.work_cells import Cell
from studies.paper.workshop import FRESH

PAPER = ("pegs", "pegs-rs", "pmi")
"""The paper's three methods."""

PER_ROW = ("pegs", "pegs-rs", "pmi", "contingency")
"""Methods whose price is stated per row; others get the same total at once."""

_AS_IN_THE_PAPER = {
    "pegs-capped": Arm("pegs-capped", "pegs-capped", "rows", pool="public", order="data")
}
"""Methods beside the paper's that are drawn with its seed pool and its order of heads."""

POOLS: tuple[Pool, ...] = ("public", "uniform", "original")
BOOTSTRAP = "bootstrap"
CHAIN_EPSILON = 100.0
BLOCK_EPSILON = 1.0
RESET, NO_RESET = "chain with reset", "chain without reset"
FORGETTING = {"public": "sweeps from public rows", "uniform": "sweeps from uniform rows"}


@dataclass(frozen=True)
class Variant:
    """The paper's comparison under one set of choices.

    Parameters
    ----------
    name, words
        A word for it, and what is different.
    pool, order, heads, population
        As of an `Arm`.
    methods
        The paper's methods that take part.
    """

    name: str
    words: str
    pool: Pool = "public"
    order: str = "data"
    heads: int | None = None
    population: str = MAIN
    methods: tuple[str, ...] = PAPER

    def arm(self, method: str) -> str:
        """Return the name of a method's arm under these choices."""
        return f"{method}, {self.name}"

    @property
    def bootstrap(self) -> str:
        """The name of the arm that draws rows of the same table."""
        return BOOTSTRAP if self.population == MAIN else f"{BOOTSTRAP}, {self.population}"


@dataclass(frozen=True)
class Family:
    """Arms on one axis, and how often each is drawn at which levels."""

    arms: tuple[Arm, ...]
    levels: tuple[float | None, ...]
    repeats: int

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of all arms."""
        for arm in self.arms:
            for level in self.levels:
                for repeat in range(self.repeats):
                    yield Cell(arm.name, level, repeat)


@dataclass(frozen=True)
class StudyDesign:
    """All that is drawn.

    Parameters
    ----------
    variants
        The paper's comparison, the main one first, then under other choices.
    families
        Arms by what they are for.
    """

    variants: tuple[Variant, ...]
    families: dict[str, Family]

    @property
    def main(self) -> Variant:
        """The choices that verdicts rest on."""
        return self.variants[0]

    @property
    def arms(self) -> dict[str, Arm]:
        """All arms by name."""
        return {arm.name: arm for family in self.families.values() for arm in family.arms}

    def cells(self) -> list[Cell]:
        """List the cells of the grid, each once."""
        return list(dict.fromkeys(c for f in self.families.values() for c in f.cells()))


def other_population(rows_in: int) -> str:
    """Return the name of the table of another size."""
    return f"{rows_in} rows"


def variants_of(size: StudySize) -> tuple[Variant, ...]:
    """List the choices under which the paper's comparison is repeated."""
    blocks_only = ("pegs", "pegs-rs")
    return (
        Variant("public", "seed rows from the public pool"),
        Variant("uniform", "seed rows from the uniform pool", pool="uniform"),
        Variant("original", "seed rows from the original (guarantee: none)", pool="original"),
        Variant(
            "public order",
            "heads by mutual information in the public pool, not in the data (no PMI)",
            order="pool",
            methods=blocks_only,
        ),
        Variant(
            "one head", "keys of one head feature, m = 1 (no PMI)", heads=1, methods=blocks_only
        ),
        *(
            Variant(
                f"N = {rows_in:,}",
                f"a table of {rows_in:,} rows (no PMI)",
                population=other_population(rows_in),
                methods=blocks_only,
            )
            for rows_in in size.other_rows_in
        ),
    )


def design_of(size: StudySize) -> StudyDesign:
    """Lay out the study."""
    variants = variants_of(size)
    others = [m for m in names() if m not in PAPER and (not size.methods or m in size.methods)]
    budgeted = [method for method in others if get(method).has_proof]
    families = {
        variant.name: Family(
            _paper_arms(variant),
            size.epsilons,
            size.repeats if variant.methods == PAPER else size.other_repeats,
        )
        for variant in variants
    }
    families |= {
        "others": Family(
            tuple(_beside(method) for method in budgeted), size.epsilons, size.other_repeats
        ),
        "references": Family(
            tuple(
                Arm(method, method, "none")
                for method in (*(m for m in others if not get(m).has_proof), FRESH)
            ),
            (None,),
            size.repeats,
        ),
        "other bootstraps": Family(
            tuple(
                Arm(variant.bootstrap, BOOTSTRAP, "none", population=variant.population)
                for variant in variants
                if variant.population != MAIN
            ),
            (None,),
            size.other_repeats,
        ),
        "l": Family(
            tuple(Arm(f"{method}, l-diverse", method, "l") for method in ("pegs", "pegs-rs")),
            size.levels,
            size.other_repeats,
        ),
        "chains": Family(
            (
                Arm(RESET, "pegs-rs", "chain", epsilon=CHAIN_EPSILON),
                Arm(NO_RESET, "pegs-rs", "chain", epsilon=CHAIN_EPSILON, reset=False),
            ),
            tuple(map(float, size.chains)),
            size.repeats,
        ),
        "blocks": Family(
            (Arm("block size", "pegs-rs", "block", epsilon=BLOCK_EPSILON),),
            tuple(map(float, size.blocks)),
            size.other_repeats,
        ),
        "sweeps": Family(
            tuple(Arm(name, "pegs", "sweeps", pool=pool) for pool, name in FORGETTING.items()),  # type: ignore[arg-type]
            tuple(map(float, size.sweeps)),
            size.other_repeats,
        ),
        "totals": Family(
            tuple(_whole(method, delta) for delta in size.deltas for method in (*PAPER, *budgeted)),
            size.epsilons,
            size.other_repeats,
        ),
    }
    return StudyDesign(variants, families)


def total_name(method: str, delta: float | None) -> str:
    """Return the name of a method's arm under an epsilon for the whole release."""
    return f"{method}, total" if delta is None else f"{method}, total, delta {delta:g}"


def _paper_arms(variant: Variant) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            variant.arm(method),
            method,
            pool=variant.pool,
            order=variant.order,  # type: ignore[arg-type]
            heads=variant.heads if method != "pmi" else None,
            population=variant.population,
        )
        for method in variant.methods
    )


def _beside(method: str) -> Arm:
    """Return another method on the paper's axis, its price the same for all rows together."""
    if method in PER_ROW:
        return Arm(method, method)
    return _AS_IN_THE_PAPER.get(method) or Arm(
        method, method, "rows", pool="default", order="default"
    )


def _whole(method: str, delta: float | None) -> Arm:
    """Return a method as a user would call it with an epsilon for everything together."""
    name = total_name(method, delta)
    return Arm(name, method, "total", pool="default", order="default", delta=delta)
