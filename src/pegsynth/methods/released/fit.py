"""From a confidential table to released blocks, everything through one privacy filter (R11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.methods.released.counted import CountedRows, CountedTable, MergedTable
from pegsynth.methods.released.declared_plan import Wanted, measured_tables
from pegsynth.methods.released.dependences import Search, told_details
from pegsynth.methods.released.details import Detail, details_on_levels
from pegsynth.methods.released.draw import fine_shares, pool_rows, released_total
from pegsynth.methods.released.first_round import FirstRound, block_counts, block_shares
from pegsynth.methods.released.joint_fit import JointFit
from pegsynth.methods.released.level_merging import Merging
from pegsynth.methods.released.pair_plan import (
    PairPlan,
    margins_beside_pairs,
    pairs_are_quiet,
    plan_pairs,
)
from pegsynth.methods.released.pair_residuals import measure_pairs
from pegsynth.methods.released.pool_fit import Margins, anchored
from pegsynth.methods.released.published import NoisyTable, Released
from pegsynth.methods.released.residual_round import ResidualFit, ResidualRound
from pegsynth.methods.released.row_pool import Pool, whole_numbers
from pegsynth.methods.released.second_round import MOST_POOL, SecondRound, rounds_for, rows_at_once
from pegsynth.methods.released.steps import Steps
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule

Progress = Callable[[str, int, int | None], None]

_PUBLIC_DEVIATION = 0.5


@dataclass(frozen=True)
class Split:
    """Parts of the whole budget: one-way counts, each choice, and both rounds."""

    margins: float
    choice: float
    first: float
    second: float

    @property
    def rest(self) -> float:
        """What both rounds have together."""
        return self.first + self.second

    def without(self, spent: float) -> Split:
        """Return the same after another part was spent, which both rounds go without."""
        rest = self.first + self.second
        kept = max(rest - spent, 0.0) / rest if rest > 0 else 1.0
        return replace(self, first=self.first * kept, second=self.second * kept)


def release_blocks(
    rows_of: Codes | CountedTable,
    category_counts: Sequence[int],
    budget_filter: PrivacyFilter,
    stream: RandomStream,
    *,
    ordered: Sequence[bool],
    public: Sequence[Float64 | None] = (),
    whole: Sequence[bool] = (),
    details: Sequence[Detail] = (),
    above: Sequence[Sequence[Int64]] = (),
    rows: int | None = None,
    steps: Steps | None = None,
    rules: Sequence[Rule] = (),
    first: int | None = None,
    wanted: Sequence[Wanted] = (),
    withheld: float = 0.0,
    threads: int = 1,
    progress: Progress = lambda *_: None,
) -> tuple[Released, JointFit]:
    """Measure a table; return what may be published, and a weighted pool made of it.

    Parameters
    ----------
    rows_of
        The confidential rows as codes, or an object that counts them.
    ordered
        For every feature whether neighbouring categories are alike.
    public
        For every feature its public shares, or None: what is public is not measured.
    whole
        For every feature whether its categories must stay apart.
    details
        Features that are drawn given their parent, parents first, on their categories.
    above
        For every feature a public hierarchy, if it has one, along which its categories merge.
    rows
        Rows to be drawn, which set the size of the pool; the noisy total otherwise.
    first
        The feature to be placed first; None: the one with the fewest levels.
    wanted
        Tables that are measured whatever is chosen, each with a share of its own; their
        features keep their categories apart where that was asked for (`whole`).
    withheld
        The part of the whole budget that is left to what comes afterwards.
    """
    steps = steps or Steps()
    # What is wanted is measured as tables beside blocks.
    steps = replace(steps, residuals=steps.residuals and not wanted and first is None)
    features = len(category_counts)
    table = (
        CountedRows(rows_of, tuple(category_counts)) if isinstance(rows_of, np.ndarray) else rows_of
    )
    noisy, deviation = budget_filter.measure(
        np.array([table.rows], dtype=np.int64), steps.total_share, purpose="total"
    )
    total = (int(noisy[0]), deviation)
    known = tuple(public) or (None,) * features
    weights = margin_weights(category_counts, known)
    steps, loud = _under_noise(
        budget_filter.price, max(total[0], 1), category_counts, weights, details, steps, rows or 1
    )
    split = split_budget(
        budget_filter.price,
        max(total[0], 1),
        category_counts,
        weights,
        steps,
        features - len(details),
        withheld=withheld + math.fsum(each.share for each in wanted),
    )
    one_ways = _one_ways(table, budget_filter, split.margins * weights, known, total[0])
    is_public = tuple(line is not None for line in known)
    measured = Released(total, one_ways, is_public, tuple(ordered), loud, (), (), (), ())
    rows_estimated = released_total(measured)
    if steps.dependences:
        closed = _spoken_of(details, whole)
        measured, spent = _with_maps(measured, table, budget_filter, steps, closed)
        split = split.without(spent)
    shares = fine_shares(measured, steps)
    told = told_details(measured.maps, category_counts)
    merging = Merging(steps, ordered, whole, above, details, told)
    drawn = rows if rows is not None else round(rows_estimated)
    plan = plan_pairs(
        budget_filter.price, split.rest, shares, rows_estimated, merging, steps, drawn
    )
    noise = block_deviation(budget_filter.price, split, features - len(details) - len(told))
    levels = plan.levels or merging.levels(shares, rows_estimated, steps.merge_below * noise)
    on_levels = details_on_levels(details, told, levels)
    merged_table = table.merged(levels)
    scaled = anchored(one_ways, is_public, rows_estimated)
    margins = Margins.of(scaled, levels, shares, rows_estimated, on_levels)
    pool = Pool(
        margins.sizes,
        min(
            pool_rows(measured, max(drawn, 1), steps),
            rows_at_once(len(plan.pairs), MOST_POOL),
        ),
        stream,
        rules=rules,
        threads=threads,
    )
    progress("blocks", 0, features)
    place = _Placing(pool, margins, steps)
    if plan.pairs:
        split = replace(split, first=plan.first)
        fit, blocks, residuals = _by_pairs(
            merged_table, place, plan, budget_filter, split, progress, withheld
        )
        fit.finish(levels, ordered)
        return replace(
            measured,
            levels=levels,
            order=tuple(pool.placed),
            blocks=tuple(blocks),
            details=on_levels,
            residuals=tuple(residuals),
            by_pairs=True,
        ), fit
    blocks, left = _first_round(merged_table, place, budget_filter, split, progress, first)
    fit = JointFit(pool, margins, steps)
    extra: list[NoisyTable] = []
    chosen: list[NoisyTable] = []
    apart: list[NoisyTable] = []
    if steps.second_round and (features > 1 or wanted):
        fit.start(blocks)
        extra = measured_tables(merged_table, fit, budget_filter, wanted)
        chosen, apart = _second_round(
            merged_table, fit, budget_filter, split.second + left, progress
        )
        fit.finish(levels, ordered)
    else:
        pool.weigh(margins.total)
    released = replace(
        measured,
        levels=levels,
        order=tuple(pool.placed),
        blocks=tuple(blocks),
        extra=(*extra, *chosen),
        details=on_levels,
        residuals=tuple(apart),
    )
    return released, fit


def _under_noise(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    details: Sequence[Detail],
    steps: Steps,
    rows: int,
) -> tuple[Steps, bool]:
    """Return the steps that the noise asks for, and whether it is loud."""
    error = margin_error(price, total, category_counts, weights)
    all_pairs = pairs_are_quiet(price, total, category_counts, details, steps, rows)
    placed = len(category_counts) - len(details)
    drowned = not all_pairs and choice_error(price, total, placed, steps) > steps.drowned_above
    loud = drowned or error > steps.loud_above * steps.wanted_margin_error
    if loud:
        steps = steps.under_noise(drowned=drowned)
    elif error < steps.quiet_below * steps.wanted_margin_error:
        steps = steps.in_quiet()
    if all_pairs:
        known = margin_error(price, total, category_counts, weights, given_total=True)
        steps = steps.for_pairs(
            margins_beside_pairs(price, total, category_counts, details, known, steps)
        )
    return steps, loud


def _with_maps(
    measured: Released,
    table: CountedTable,
    budget_filter: PrivacyFilter,
    steps: Steps,
    closed: set[int],
) -> tuple[Released, float]:
    """Look for features that another one tells; return them with what that has cost."""
    before, shares = budget_filter.left, fine_shares(measured, steps)
    search = Search(table, shares, released_total(measured), budget_filter, steps, closed)
    found = replace(measured, maps=search.run())
    return found, before - budget_filter.left


def _spoken_of(details: Sequence[Detail], whole: Sequence[bool]) -> set[int]:
    """Return the features that no found dependence may be about: others speak of them."""
    parents = {each.parent for each in details}
    apart = {feature for feature, kept in enumerate(whole) if kept}
    return {each.feature for each in details} | parents | apart


def margin_weights(
    category_counts: Sequence[int], public: Sequence[Float64 | None] = ()
) -> Float64:
    """Return how the budget of the one-way counts is split: wide features get more."""
    weights = np.array([count ** (2 / 3) for count in category_counts])
    for feature, known in enumerate(public):
        if known is not None:
            weights[feature] = 0.0
    whole = weights.sum()
    shared: Float64 = weights / whole if whole > 0 else weights
    return shared


def _one_ways(
    table: CountedTable,
    budget_filter: PrivacyFilter,
    shares: Float64,
    public: Sequence[Float64 | None],
    total: int,
) -> tuple[NoisyTable, ...]:
    """Measure the one-way counts, but those that are public shares of the noisy total."""
    tables = []
    for feature, known in enumerate(public):
        if known is not None:
            counts = whole_numbers(known * max(total, 1), max(total, 1))
            tables.append(NoisyTable((feature,), counts, _PUBLIC_DEVIATION))
            continue
        counts = table.one_way(feature)
        noisy, deviation = budget_filter.measure(
            counts,
            float(shares[feature]),
            purpose="marginals",
            features=(feature,),
            levels=(len(counts),),
        )
        tables.append(NoisyTable((feature,), noisy, deviation))
    return tuple(tables)


def block_deviation(price: Price, split: Split, features: int) -> float:
    """Return the noise on a block of the first round, if every feature gets one."""
    return price.deviation(split.first / max(features - 1, 1))


def margin_error(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    *,
    given_total: bool = False,
) -> float:
    """Return the error of one-way tables if the whole budget went there.

    It is smaller once the number of rows is given, which all tables together tell well.
    """
    errors = [
        math.sqrt(2 / math.pi)
        * (math.sqrt(count * (count - 1)) if given_total else count)
        * price.deviation(float(weight))
        / (2 * total)
        for count, weight in zip(category_counts, weights, strict=True)
        if weight > 0
    ]
    return float(np.sum(errors)) / len(category_counts)


def choice_error(price: Price, total: int, features: int, steps: Steps) -> float:
    """Return by how much the best of all pairs must stand out to be chosen, as a part of all rows.

    A choice adds noise to the distance of every candidate; the largest of so many is about the
    logarithm of their number, in units of that noise.
    """
    pairs = features * (features - 1) / 2
    if pairs < 2:
        return 0.0
    share = steps.under_noise().first_choices / (features - 1)
    return price.choice_noise(share) * math.log(pairs) / (2 * total)


def split_budget(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    steps: Steps,
    placed: int | None = None,
    *,
    withheld: float = 0.0,
) -> Split:
    """Split the whole by public figures and the noisy number of rows.

    One-way counts get the more, the larger their error would be if everything went there.
    Features that are not placed by choices, but given their parent, need no choice. What is
    withheld, for tables that are wanted and for sums, is taken off all but the total.
    """
    wanted = margin_error(price, total, category_counts, weights) / steps.wanted_margin_error
    needed = wanted if price.allowance.route == "pure" else wanted**2
    # The total is paid for already; the others share what it and the withheld part leave.
    kept = 1 - withheld / (1 - steps.total_share)
    margins = min(max(needed, steps.least_margins), steps.most_margins) * kept
    choices = steps.first_choices * kept
    rest = (1 - withheld - steps.total_share - choices - margins) * (1 - 1e-9)
    first = rest * steps.first_round if steps.second_round else rest
    count = len(category_counts) if placed is None else placed
    choice = choices / max(count - 1, 1)
    return Split(margins, choice, first, rest - first)


@dataclass(frozen=True)
class _Placing:
    """Where features are placed, and under which steps."""

    pool: Pool
    margins: Margins
    steps: Steps

    def without_heads(self, feature: int) -> None:
        """Draw a feature by its one-way shares."""
        shares = self.margins.shares[feature][None, :]
        self.pool.draw(feature, (), shares)

    def with_block(self, block: NoisyTable) -> None:
        """Draw a feature by its block."""
        feature = block.features[-1]
        if self.steps.fold:
            self.margins.fold(block, (feature,))
        counts = block_counts(block, self.pool, self.margins, self.steps)
        shares = block_shares(block, counts, self.margins)
        self.pool.draw(feature, block.features[:-1], shares)


def _first_round(
    table: MergedTable,
    place: _Placing,
    budget_filter: PrivacyFilter,
    split: Split,
    progress: Progress,
    first: int | None = None,
) -> tuple[list[NoisyTable], float]:
    """Place all features; return the blocks and what is left of the round's share."""
    sizes = place.margins.sizes
    details = place.margins.details
    given = {detail.feature for detail in details}
    plain = [feature for feature in range(len(sizes)) if feature not in given]
    if first is None:
        first = min(plain, key=lambda feature: sizes[feature])
    place.without_heads(first)
    chooser = FirstRound(
        table,
        place.pool,
        place.margins,
        budget_filter,
        place.steps,
        split.choice,
        split.first,
    )
    left = [feature for feature in plain if feature != first]
    blocks: list[NoisyTable] = []
    while left:
        feature, block = chooser.next(left)
        left.remove(feature)
        if block is None:
            place.without_heads(feature)
        else:
            place.with_block(block)
            blocks.append(block)
        progress("blocks", len(plain) - len(left), len(sizes))
    for detail in details:
        shares = place.margins.shares
        detail.place(place.pool, shares[detail.parent], shares[detail.feature])
    progress("blocks", len(sizes), len(sizes))
    return blocks, chooser.left_share


def _by_pairs(
    table: MergedTable,
    place: _Placing,
    plan: PairPlan,
    budget_filter: PrivacyFilter,
    split: Split,
    progress: Progress,
    withheld: float,
) -> tuple[JointFit, list[NoisyTable], list[NoisyTable]]:
    """Measure all pairs, draw the pool, and spend the rest on what pairs do not tell."""
    pool, margins, steps = place.pool, place.margins, place.steps
    residuals = measure_pairs(table, budget_filter, plan.pairs, pool.sizes, plan.share)
    blocks: list[NoisyTable] = []
    if plan.first:
        blocks, _ = _first_round(table, place, budget_filter, split, progress, None)
    progress("blocks", len(pool.sizes), len(pool.sizes))
    fit = ResidualFit(pool, margins, steps)
    fit.draw(residuals, blocks=blocks)
    fit.begin()
    # What other paths spend on choices and blocks is spent here as well.
    left = max(budget_filter.left - withheld, 0.0) * (1 - 1e-9)
    chooser = ResidualRound(table, fit, budget_filter, steps, left, left / steps.rounds)
    while (found := chooser.next()) is not None:
        chooser.heard(moved=fit.take_residual(found))
        residuals.append(found)
        progress("tables", len(residuals) - len(plan.pairs), None)
    return fit, blocks, residuals


def _second_round(
    table: MergedTable,
    fit: JointFit,
    budget_filter: PrivacyFilter,
    share: float,
    progress: Progress,
) -> tuple[list[NoisyTable], list[NoisyTable]]:
    """Measure tables and residuals until this share of the budget is used up."""
    rounds = rounds_for(len(fit.pool.sizes), fit.steps.rounds)
    steps = replace(fit.steps, rounds=rounds)
    chooser = SecondRound(table, fit, budget_filter, steps, share, share / rounds)
    while chooser.next():
        progress("tables", chooser.measured, None)
    return chooser.tables, chooser.residuals
