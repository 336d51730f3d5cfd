"""What a command line asked for, as the library's own types."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy import Budget, Shares
from pegsynth.processors import usable_processors
from pegsynth.schema import Schema
from pegsynth.schema.decoding import How
from pegsynth.synthesizers.options import METHODS, DrawOptions, FitOptions, check_choice
from pegsynth.synthesizers.plan import AUTO, settle_method
from pegsynth.synthesizers.synthesize import budget_for

_BUDGET_NAMES = re.compile(r"(?<![\w-])(?:epsilon per row|epsilon|delta|alpha|l)(?![\w-])")


@dataclass(frozen=True)
class Request:
    """All flags that steer a release; commands fill in those that they have."""

    rows: int | None = None
    method: str | None = "pegs"
    epsilon: float | None = None
    delta: float | None = None
    epsilon_per_row: float | None = None
    l: float | None = None  # noqa: E741
    alpha: float | None = None
    share: list[str] | None = None
    datasets: int = 1
    heads: int | None = None
    tail_bits: int = 1
    order: str | None = None
    order_rows: int | None = None
    sweeps: int = 1
    block_size: int = 10
    visits: int | None = None
    chains: int | None = None
    urn: bool | None = None
    prior: str | None = None
    seed_pool: str | Path | None = None
    rows_in: int | None = None
    where: list[str] | None = None
    synthesize: str | None = None
    no_guarantee: bool = False
    log_linear: bool = False
    proper: bool = False
    decode: str = "values"
    threads: int | None = None
    seed: int | None = None
    accept_unreviewed_schema: bool = False
    resume: Path | None = None
    engine: str = "local"
    master: str | None = None

    def __post_init__(self) -> None:
        if self.decode not in ("values", "labels"):
            raise ParameterError(f"--decode is values or labels, not {self.decode!r}")
        check_choice("engine", self.engine, ("local", "spark"))
        if self.master is not None and self.engine != "spark":
            raise ParameterError("--master goes with --engine spark")
        if self.threads is not None and self.threads < 1:
            raise ParameterError("--threads must be at least 1")

    @property
    def has_budget(self) -> bool:
        """Whether any budget was stated."""
        stated = (self.epsilon, self.epsilon_per_row, self.l, self.alpha)
        return any(value is not None for value in stated)

    @property
    def budget(self) -> Budget:
        """The stated budget."""
        shares = _shares(self.share)
        try:
            return budget_for(
                self.method or "pegs",
                partial=bool(_names(self.synthesize)),
                no_guarantee=self.no_guarantee,
                epsilon=self.epsilon,
                delta=self.delta,
                epsilon_per_row=self.epsilon_per_row,
                l=self.l,
                alpha=self.alpha,
                shares=shares,
            )
        except BudgetError as error:
            raise BudgetError(_with_flags(str(error))) from None

    @property
    def fit_options(self) -> FitOptions:
        """How to disintegrate."""
        order: Any = self.order
        return FitOptions(self.heads, self.tail_bits, order, self.order_rows)

    @property
    def draw_options(self) -> DrawOptions:
        """How to draw."""
        names: Any = {name: getattr(self, name) for name in DrawOptions.__dataclass_fields__}
        given = {
            "method": self.method or "pegs",
            "where": _clamps(self.where),
            "synthesize": _names(self.synthesize),
        }
        return DrawOptions(**names | given)

    def settled(self, schema: Schema, *, saved: bool = False) -> tuple[Request, tuple[str, ...]]:
        """Return the request with ``--method auto`` settled, and lines that say how and why.

        Parameters
        ----------
        saved
            Whether the model is saved and sampled later. Urns are not saved, so that visits
            are counted then unless the user asks for urns, which is refused.
        """
        check_choice("method", self.method, (AUTO, *METHODS))

        def taken(method: str) -> Request:
            counted = saved and method == "pegs-capped" and self.urn is None
            return replace(self, method=method, urn=False if counted else self.urn)

        def asked(method: str) -> tuple[Budget, DrawOptions]:
            options = taken(method).draw_options
            return taken(method).budget, options

        partial = bool(_names(self.synthesize))
        method, reason = settle_method(
            self.method or "pegs",
            schema,
            self.fit_options,
            asked,
            epsilon=self.epsilon,
            partial=partial,
        )
        if not reason:
            return taken(method), ()
        assumed = () if partial or self.epsilon is None else self.assumed()
        return taken(method), (f"Method: {reason}.", *assumed)

    def assumed(self) -> tuple[str, ...]:
        """Say what a method is chosen by where the number of original rows was not stated."""
        if self.rows_in is not None:
            return ()
        instead = "--rows" if self.rows is not None else "1, for want of --rows"
        return (f"The number of original rows was not stated (--rows-in); taken to be {instead}.",)

    def changed(self) -> list[str]:
        """Return the flags on how to draw that differ from their defaults."""
        kept = {"rows", "datasets"}
        names = [name for name in DrawOptions.__dataclass_fields__ if name not in kept]
        plain = Request(method=None)
        return [
            "--" + name.replace("_", "-")
            for name in names
            if getattr(self, name) != getattr(plain, name)
        ]

    @property
    def how(self) -> How:
        """How to decode."""
        return "labels" if self.decode == "labels" else "values"

    @property
    def thread_count(self) -> int:
        """Threads to use."""
        return self.threads or usable_processors()


def _with_flags(message: str) -> str:
    """Call the ways of stating a budget by their flags, as whoever typed them does."""
    return _BUDGET_NAMES.sub(lambda found: "--" + found[0].replace(" ", "-"), message)


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (given or "").split(","))))


def _clamps(given: list[str] | None) -> tuple[tuple[str, str], ...]:
    clamps = []
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"--where {text}: write it as FEATURE=VALUE")
        clamps.append((name, value))
    return tuple(clamps)


def _shares(given: list[str] | None) -> Shares:
    stated: dict[str, float] = {}
    for text in given or ():
        name, _, value = text.partition("=")
        if name not in ("order", "marginals", "draws"):
            raise BudgetError(f"--share {text}: the shares are order, marginals and draws")
        try:
            stated[name] = float(value)
        except ValueError:
            raise BudgetError(
                f"--share {text}: write it as NAME=SHARE, such as order=0.1"
            ) from None
    if stated and "draws" not in stated:
        others = [stated.get("order", 0.1), stated.get("marginals", 0.1)]
        stated["draws"] = round(1 - sum(others), 12) if sum(others) <= 1 else 0.0
    return Shares(**stated)
