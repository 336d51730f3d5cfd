"""Each event of a ledger as one sentence: what was read, what it cost, what it means.

The statement says what a ledger promises as a whole; the sentences here say where the
price comes from, event by event, for a reader who does not know the mechanisms. They hold
nothing that the events do not hold: a ledger is public, and so is its explanation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pegsynth.privacy.accountant import PureAccountant, ZCDPAccountant, delta_taken
from pegsynth.privacy.draw_events import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    CountedDraws,
    Draws,
    ImputationDraws,
    MarginalDraws,
    PegsDraws,
    UrnDraws,
)
from pegsynth.privacy.events import (
    CategoriesFound,
    Diversity,
    Event,
    NotPrivate,
    PooledRows,
    RunBegins,
    Selection,
    UnitBound,
    UnknownEvent,
    Unspent,
)
from pegsynth.privacy.noise_events import (
    AgreementCounts,
    Noisy,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
)
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.privacy.runs import bound_of, runs_of

if TYPE_CHECKING:
    from pegsynth.privacy.ledger import Ledger

_MOST_NAMED = 6


class Explained(NamedTuple):
    """One event as a line of a table.

    Parameters
    ----------
    kind
        The name of the event in ``privacy.json``.
    epsilon, rho
        Its price in both currencies, rounded up, for a unit with all its rows; None where it
        has no price.
    covered
        Whether a result covers it under the delta that the ledger states.
    sentence
        The event in words.
    """

    kind: str
    epsilon: float | None
    rho: float | None
    covered: bool
    sentence: str


def explanation(ledger: Ledger) -> str:
    """Write one numbered sentence for each event."""
    lines = [f"{place}. {line.sentence}" for place, line in enumerate(explained(ledger), start=1)]
    return "\n".join(lines or ["Nothing has been done with the table."]) + "\n"


def explained(ledger: Ledger) -> list[Explained]:
    """Return every event with its price and its sentence."""
    from pegsynth.privacy.guarantee import uncovered_places
    from pegsynth.privacy.statement import rows_folded

    folded = rows_folded(ledger)
    uncovered = uncovered_places(ledger.events, delta=ledger.delta or None)
    bounds = [bound_of(run) for run in runs_of(ledger.events) for _ in run]
    lines = []
    for place, (event, rows_per_unit) in enumerate(zip(ledger.events, bounds, strict=True)):
        epsilon, rho = (
            _price(accountant.price(event, rows_per_unit=rows_per_unit))
            for accountant in (PureAccountant(), ZCDPAccountant())
        )
        read, means = _described(event)
        if folded is not None and isinstance(event, UnitBound):
            read, means = _folded(folded)
        taken = float_up(delta_taken((event,), rows_per_unit=rows_per_unit))
        sentence = f"{read}; {_cost(epsilon, rho, taken)}; {means}."
        lines.append(Explained(kind_of(event), epsilon, rho, place not in uncovered, sentence))
    return lines


def kind_of(event: Event) -> str:
    """Return the name of an event in ``privacy.json``."""
    return event.kind if isinstance(event, UnknownEvent) else str(event.__struct_config__.tag)


def _price(price: Decimal | None) -> float | None:
    return None if price is None else float_up(price)


def _cost(epsilon: float | None, rho: float | None, delta: float) -> str:
    if epsilon == 0 and rho == 0:
        return "it cost nothing"
    prices = (("epsilon", epsilon), ("rho", rho))
    known = [f"{name} = {display_up(price)}" for name, price in prices if price is not None]
    besides = f" and {display_up(delta)} of delta" if delta else ""
    return f"it cost {' or '.join(known)}{besides}" if known else "it has no price"


def _described(event: Event) -> tuple[str, str]:
    """Return what was read of the table, and what that means for its reader."""
    words: Callable[[Any], tuple[str, str]] = _WORDS[type(event)]
    return words(event)


def _left_over(event: Unspent) -> tuple[str, str]:
    return (
        "A part of the budget was set aside and not used",
        "it counts as spent, because with another table it might have been used",
    )


def _begun(event: RunBegins) -> tuple[str, str]:
    stated = f"delta = {display_up(event.delta)}" if event.delta else "no delta"
    return (
        f"A run on the table begins, which stated {stated}",
        "its events are those up to the next run, and it adds up with the others as a whole",
    )


def _bounded(event: UnitBound) -> tuple[str, str]:
    return (
        f"At most {event.rows_per_unit} {_rows(event.rows_per_unit)} of each unit were read",
        "the promise is made to a unit with all its rows, and every other price here is for that "
        "many rows",
    )


def _folded(most: int) -> tuple[str, str]:
    return (
        f"The rows of each unit, at most {most}, were folded into one",
        "the promise is made to a unit with all its rows, at the price of one row",
    )


def _not_private(event: NotPrivate) -> tuple[str, str]:
    return (
        f"Something was done that no result covers: {_one_line(event.text)}",
        "because of it the whole release carries no guarantee",
    )


def _unknown(event: UnknownEvent) -> tuple[str, str]:
    return (
        f"An event of the kind {_one_line(event.kind)!r} was recorded by another version",
        "this version cannot price it, so the whole release carries no guarantee; update pegsynth "
        "to read it",
    )


def _counted(event: NoisyCounts) -> tuple[str, str]:
    noise = _noise(event)
    what = f"by {_names(event.features)}" if event.features else f"({_one_line(event.purpose)})"
    cells = "" if event.table_cells is None else f", all {event.table_cells:,} of them"
    touched = "1 count" if event.cells == 1 else f"{event.cells} counts"
    return (
        f"Rows were counted {what} and {noise} was added to every count{cells}{_label(event)}",
        f"one row changes {touched}, and the noise hides which table gave them, so the noisy "
        "counts may be used again at no further cost",
    )


def _added_up(event: NoisySums) -> tuple[str, str]:
    what = f"{event.sums:,} sums of products of clipped and scaled values of"
    if event.purpose == "edges":
        what = "Sums of clipped and scaled values of"
    return (
        f"{what} {_names(event.features)} were taken over all rows and {_noise(event)} was added "
        f"to each{_label(event)}",
        f"whatever its values, one row adds at most {event.largest_sum:,} to all of them together "
        f"({event.largest_square:,} in squares), by bounds that are public or were paid for before",
    )


def _residual(event: NoisyResiduals) -> tuple[str, str]:
    return (
        f"Of the rows counted by {_names(event.features)} what the counts of fewer features do not "
        f"tell was taken, in whole numbers, and {_noise(event)} was added to every cell, all "
        f"{math.prod(event.levels):,} of them{_label(event)}",
        f"one row moves these numbers by {event.absolute_sum:,} in all, their squares by "
        f"{event.squared_length:,}, and the noise hides which table gave them, so they may be used "
        "again at no further cost",
    )


def _noise(event: Noisy) -> str:
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    if event.mechanism == "discrete-laplace":
        return f"discrete Laplace noise of scale {float(scale):.6g}"
    return f"discrete Gaussian noise of variance {float(scale):.6g}"


def _found(event: CategoriesFound) -> tuple[str, str]:
    variance = Fraction(event.variance_numerator, event.variance_denominator)
    return (
        f"Rows were counted by every value of {_names(event.features)}, discrete Gaussian noise of "
        f"variance {float(variance):.6g} was added, and values with noisy counts above "
        f"{event.threshold:,} became categories{_label(event)}",
        "a value that only one unit has becomes a category with a chance of at most that delta, "
        "and the noise hides the rest",
    )


def _verified(event: AgreementCounts) -> tuple[str, str]:
    return (
        f"The table was dealt to {event.parts:,} parts, {_one_line(event.formula)!r} was fitted to "
        f"each, and the parts that agree with a release were counted for {_names(event.terms)}; "
        f"{_noise(event.noise)} was added to every count{_label(event)}",
        "a unit is in one part with all its rows, so it changes every count by 1 at most, and the "
        "noise hides that",
    )


def _chosen(event: Selection) -> tuple[str, str]:
    times = "once" if event.count == 1 else f"{event.count} times"
    among = "" if event.candidates is None else f" among {event.candidates:,} candidates"
    of = f" ({_one_line(event.among)})" if event.among else ""
    result = f", and the choice was {_names(event.chosen)}" if event.chosen else ""
    return (
        f"The exponential mechanism chose {times}{among}{of} for the purpose "
        f"{_one_line(event.purpose)!r}{result}{_label(event)}",
        "good candidates were likelier than bad ones, and one row can only shift these odds "
        "by the price",
    )


def _pooled(event: PooledRows) -> tuple[str, str]:
    read, means = _described(event.step)
    return (
        f"In a table of steps from one row of a unit to its next, at most {event.rows_per_unit} of "
        f"each unit: {read[0].lower()}{read[1:]}",
        f"{means}; the price is for all {event.rows_per_unit} rows of a unit in that table, which "
        "may be alike",
    )


def _made_diverse(event: Diversity) -> tuple[str, str]:
    where = _names(event.features) if event.features else "all features"
    return (
        f"Virtual rows were added by true counts until {where} had l-diversity with "
        f"l = {event.l:g}",
        "no value can be told from its entry with much certainty, but this is not differential "
        "privacy",
    )


def _of_pegs(event: PegsDraws) -> tuple[str, str]:
    how = f"feature by feature from {_virtual(event)}, {_sweeps(event.sweeps)}"
    return _drawn(event, how, _influence(event))


def _of_blocks(event: BlockDraws) -> tuple[str, str]:
    how = (
        f"from {_virtual(event)} in {event.blocks:,} blocks of at most {event.block_size:,} rows "
        "that start anew"
    )
    return _drawn(event, how, f"an entry answers once in a block, so {_influence(event)}")


def _of_capped(event: CappedDraws) -> tuple[str, str]:
    how = f"from {_virtual(event)}, an entry answering {event.visits:,} times at most"
    return _drawn(event, how, f"{_influence(event)}, however many rows are drawn")


def _of_urns(event: UrnDraws) -> tuple[str, str]:
    how = (
        f"from {_virtual(event)} and put every drawn value back as one more row, "
        f"{event.visits:,} draws from an entry at most"
    )
    limit = (
        f"one row of the original changes {event.features} entries in each of {event.urns} sets, "
        "however many rows are drawn"
    )
    return _drawn(event, how, limit)


def _of_imputation(event: ImputationDraws) -> tuple[str, str]:
    how = f"from models fitted to all rows, mixed with {_virtual(event)}, {_sweeps(event.sweeps)}"
    limit = f"every row of the original can influence all {event.count:,} draws"
    return _drawn(event, how, limit)


def _of_contingency(event: ContingencyDraws) -> tuple[str, str]:
    how = f"from the full table of all features, that is from {_virtual(event)}"
    return _drawn(event, how, _influence(event))


def _of_marginals(event: MarginalDraws) -> tuple[str, str]:
    return _drawn(event, f"feature by feature from one-way {_virtual(event)}", _influence(event))


_WORDS: Final[Mapping[type, Callable[..., tuple[str, str]]]] = {
    NoisyCounts: _counted,
    NoisyResiduals: _residual,
    NoisySums: _added_up,
    CategoriesFound: _found,
    AgreementCounts: _verified,
    Selection: _chosen,
    PooledRows: _pooled,
    Unspent: _left_over,
    RunBegins: _begun,
    UnitBound: _bounded,
    Diversity: _made_diverse,
    NotPrivate: _not_private,
    UnknownEvent: _unknown,
    PegsDraws: _of_pegs,
    BlockDraws: _of_blocks,
    CappedDraws: _of_capped,
    UrnDraws: _of_urns,
    ImputationDraws: _of_imputation,
    ContingencyDraws: _of_contingency,
    MarginalDraws: _of_marginals,
}
"""Who finds the words for an event; a test holds that no kind is left out."""


def _drawn(event: Draws, how: str, limit: str) -> tuple[str, str]:
    rows, datasets = event.rows, event.datasets
    many = f"{datasets:,} tables of " if datasets > 1 else ""
    what = "rows" if rows is None else f"{many}{rows:,} {_rows(rows)}"
    return (
        f"The sampler drew {what} {how}{_label(event)}",
        f"{limit}, and each is blurred by the virtual rows",
    )


def _virtual(event: Draws) -> str:
    alpha = Fraction(event.alpha_numerator, event.alpha_denominator)
    return f"counts with at least {float(alpha):.6g} virtual rows for every value"


def _influence(event: CountedDraws) -> str:
    return f"one row of the original can influence {event.count:,} draws"


def _sweeps(sweeps: int) -> str:
    return "in one sweep" if sweeps == 1 else f"in {sweeps:,} sweeps"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _names(names: tuple[str, ...]) -> str:
    """List names; a long list ends with the number of those left out."""
    shown = [_one_line(name) for name in names[:_MOST_NAMED]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _label(event: Event) -> str:
    return f" ({_one_line(event.label)})" if event.label else ""


def _one_line(text: str) -> str:
    """Collapse white space, so that no name can pose as another line."""
    return " ".join(text.split())
