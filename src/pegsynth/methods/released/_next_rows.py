"""What rules forbid together that none of them says alone (R18).

If every category of a feature is forbidden by some rule, then no row may meet the other
conditions of all these rules at once. That is a rule of its own, about fewer features.
With all such rules at hand, a row that is drawn feature by feature, in any order, never
gets to a feature that has no category left: nothing that was drawn is thrown away.

Rows that follow other rows, drawn from a pool of rows that hold both: no data, no budget.

The pool was drawn from released tables. Every feature of the next row is drawn in turn, given a
few of those that are known by then. Which ones is seen in the pool: they are taken one by one while
they tell more of the feature than chance would. What is drawn is the value of a pool row that
agrees in all of them, the donor. Where few agree, the last of them may be left out: a row with n
donors takes one of these with a chance of n/(n + 1), and goes on with fewer features otherwise.

Rules hold in every row: what they forbid is drawn again among what they leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.kernels.pool_loops import uniforms
from pegsynth.methods.released._values import Detail
from pegsynth.random import Words
from pegsynth.schema.rules import Rule

Parts = Mapping[int, frozenset[int]]

MOST_RULES = 256
_MOST_STEPS = 100_000


def with_implied(rules: Sequence[Rule], category_counts: Sequence[int]) -> tuple[Rule, ...]:
    """Return rules that forbid the same rows, and say all that they forbid together.

    Whatever values a row has in some of its features: if it breaks none of these rules
    that speak of those features alone, it can be completed.
    """
    known = _Known()
    for rule in rules:
        known.add(dict(rule.forbidden))
    steps = [_MOST_STEPS]
    found = True
    while found:
        found = False
        for feature, size in enumerate(category_counts):
            for parts in list(_without(known.rules, feature, size, steps)):
                if not parts:
                    raise SchemaError("the schema's rules forbid every row; list fewer categories")
                found |= known.add(parts)
    return tuple(Rule.of({f: sorted(codes) for f, codes in parts.items()}) for parts in known.rules)


class _Known:
    """Rules of which none says a part of what another one says."""

    def __init__(self) -> None:
        self.rules: list[Parts] = []

    def add(self, new: Parts) -> bool:
        """Add a rule; return whether it says anything new."""
        if any(_says(old, new) for old in self.rules):
            return False
        self.rules = [old for old in self.rules if not _says(new, old)]
        self.rules.append(new)
        if len(self.rules) > MOST_RULES:
            raise _too_many()
        return True


def _says(rule: Parts, other: Parts) -> bool:
    """Say whether a rule forbids all that another one forbids."""
    return all(feature in other and other[feature] <= codes for feature, codes in rule.items())


def _without(rules: Sequence[Parts], feature: int, size: int, steps: list[int]) -> Iterator[Parts]:
    """Yield what must not be met because no category of a feature would be left."""
    own = [rule for rule in rules if feature in rule]
    left = frozenset(range(size))
    if frozenset[int]().union(*(rule[feature] for rule in own)) != left:
        return
    naming = {code: [rule for rule in own if code in rule[feature]] for code in left}

    def cover(left: frozenset[int], held: Parts) -> Iterator[Parts]:
        steps[0] -= 1
        if steps[0] < 0:
            raise _too_many()
        if not left:
            yield held
            return
        for rule in naming[min(left, key=lambda code: (len(naming[code]), code))]:
            together = _together(held, rule, feature)
            if together is not None:
                yield from cover(left - rule[feature], together)

    yield from cover(left, {})


def _together(held: Parts, rule: Parts, but: int) -> Parts | None:
    """Return the conditions of `held` and of a rule but for one feature; None if they clash."""
    together = dict(held)
    for feature, codes in rule.items():
        if feature != but:
            together[feature] = together.get(feature, codes) & codes
            if not together[feature]:
                return None
    return together


def _too_many() -> ParameterError:
    return ParameterError(
        "the schema's rules can act together in too many ways; state fewer rules about the same "
        "features"
    )


POOL_ROWS = 1 << 18
"""Rows of the pool that others are drawn from."""
_MOST_HEADS = 6
_LOOKED_AT = 1 << 16
"""Rows of the pool by which heads are chosen."""
_BEYOND_CHANCE = 1.5
"""How many times what chance would tell a head must tell."""
_MOST_KEY = 1 << 62
_BACK_OFF = 1.0
_REDRAWN = 1 << 14


@dataclass(frozen=True, eq=False)
class NextRows:
    """Draws the last features of rows given the first ones.

    Parameters
    ----------
    sizes
        Categories of every feature.
    rules
        What no row may be, with all that follows from it.
    details
        By feature: what it belongs to.
    targets
        The features that are drawn, in this order.
    """

    sizes: tuple[int, ...]
    rules: tuple[Rule, ...]
    details: Mapping[int, Detail]
    targets: tuple[_Target, ...]

    @classmethod
    def of(
        cls,
        pool: Codes,
        sizes: Sequence[int],
        known: int,
        *,
        rules: Sequence[Rule] = (),
        details: Sequence[Detail] = (),
    ) -> NextRows:
        """Look at a pool.

        Parameters
        ----------
        known
            How many features, the first ones, are given.
        details
            Features that belong to another one, on categories.
        """
        implied = with_implied(rules, sizes) if rules else ()
        above = {each.feature: each for each in details}
        order = _order(known, len(sizes), above)
        targets = []
        for place, feature in enumerate(order):
            heads = [*range(known), *order[:place]]
            first = [above[feature].parent] if feature in above else []
            targets.append(_Target.of(pool, sizes, feature, heads, first))
        return cls(tuple(sizes), tuple(implied), above, tuple(targets))

    def draw(self, known: Codes, words: Words) -> Codes:
        """Return the features that follow, for every row of those that are known."""
        rows = np.zeros((len(known), len(self.sizes)), dtype=np.int64)
        rows[:, : known.shape[1]] = known
        done = set(range(known.shape[1]))
        for target in self.targets:
            rows[:, target.feature] = target.draw(rows, words)
            done.add(target.feature)
            self._obey(rows, target, done, words)
        return rows[:, known.shape[1] :].astype(np.uint32)

    def _obey(self, rows: Int64, target: _Target, done: set[int], words: Words) -> None:
        """Draw again what a rule forbids, or what does not belong to its parent."""
        feature = target.feature
        rules = [
            dict(rule.forbidden)
            for rule in self.rules
            if {feature} <= {place for place, _ in rule.forbidden} <= done
        ]
        detail = self.details.get(feature)
        wrong = np.zeros(len(rows), dtype=bool)
        for parts in rules:
            wrong |= _meets(rows, parts)
        if detail is not None:
            wrong |= ~detail.allowed[rows[:, detail.parent], rows[:, feature]]
        places = np.flatnonzero(wrong)
        for start in range(0, len(places), _REDRAWN):
            some = places[start : start + _REDRAWN]
            allowed = np.ones((len(some), self.sizes[feature]), dtype=bool)
            for parts in rules:
                others = {place: codes for place, codes in parts.items() if place != feature}
                met = _meets(rows[some], others)
                allowed[np.ix_(met, np.array(sorted(parts[feature])))] = False
            if detail is not None:
                allowed &= detail.allowed[rows[some, detail.parent]]
            rows[some, feature] = _among(allowed, target.shares, words)


@dataclass(frozen=True, eq=False)
class _Target:
    """One feature, its heads in the order in which they were taken, and where donors stand.

    Parameters
    ----------
    keys
        For every number of heads, from none on, the sorted keys of the pool rows.
    values
        What the feature is in these rows, in the same order.
    """

    feature: int
    heads: tuple[int, ...]
    sizes: tuple[int, ...]
    keys: tuple[Int64, ...]
    values: tuple[NDArray[np.uint32], ...]
    shares: Float64

    @classmethod
    def of(
        cls,
        pool: Codes,
        sizes: Sequence[int],
        feature: int,
        candidates: Sequence[int],
        first: Sequence[int],
    ) -> _Target:
        heads = _chosen_heads(pool[:_LOOKED_AT], sizes, feature, candidates, first)
        own = pool[:, feature].astype(np.uint32)
        keys, values = [], []
        key = np.zeros(len(pool), dtype=np.int64)
        for head in (None, *heads):
            if head is not None:
                key = key * sizes[head] + pool[:, head]
            order = np.argsort(key, kind="stable")
            keys.append(key[order])
            values.append(own[order])
        counts = np.bincount(own, minlength=sizes[feature]).astype(np.float64)
        radix = tuple(sizes[head] for head in heads)
        return cls(feature, tuple(heads), radix, tuple(keys), tuple(values), counts)

    def draw(self, rows: Int64, words: Words) -> NDArray[np.uint32]:
        """Return the value of a donor for every row."""
        wanted = [np.zeros(len(rows), dtype=np.int64)]
        for head, size in zip(self.heads, self.sizes, strict=True):
            wanted.append(wanted[-1] * size + rows[:, head])
        found = np.zeros(len(rows), dtype=np.uint32)
        left = np.arange(len(rows))
        for place in range(len(self.heads), -1, -1):
            keys, key = self.keys[place], wanted[place][left]
            start = np.searchsorted(keys, key, side="left")
            donors = np.searchsorted(keys, key, side="right") - start
            here = uniforms(words.take(len(left))) * (donors + _BACK_OFF) < donors
            here |= place == 0
            taken = left[here]
            which = (uniforms(words.take(len(taken))) * donors[here]).astype(np.int64)
            at = start[here] + np.minimum(which, np.maximum(donors[here] - 1, 0))
            found[taken] = self.values[place][at]
            left = left[~here]
        return found


def _order(known: int, features: int, above: Mapping[int, Detail]) -> list[int]:
    """Return the features that are drawn, each after what it belongs to."""
    order: list[int] = []
    waiting = list(range(known, features))
    while waiting:
        ready = [each for each in waiting if each not in above or above[each].parent not in waiting]
        order += ready
        waiting = [each for each in waiting if each not in ready]
    return order


def _chosen_heads(
    pool: Codes, sizes: Sequence[int], feature: int, candidates: Sequence[int], first: Sequence[int]
) -> list[int]:
    """Take the features that tell most, while they tell more than chance would."""
    own = pool[:, feature].astype(np.int64)
    key = np.zeros(len(pool), dtype=np.int64)
    heads: list[int] = []
    cells = 1
    left = [each for each in candidates if sizes[each] > 1]
    told = _told(key, own, sizes[feature])
    while left and len(heads) < max(_MOST_HEADS, len(first)):
        forced = [each for each in first if each in left]
        tried = {
            each: _told(key * sizes[each] + pool[:, each], own, sizes[feature])
            for each in forced or left
            if cells * sizes[each] * sizes[feature] < _MOST_KEY
        }
        if not tried:
            break
        best = max(tried, key=lambda each: tried[each][0] - _BEYOND_CHANCE * tried[each][1])
        gained = tried[best][0] - told[0] - _BEYOND_CHANCE * (tried[best][1] - told[1])
        if gained <= 0 and not forced:
            break
        heads.append(best)
        left.remove(best)
        # Keys are numbered anew, so that they stay small whatever was taken.
        cells *= sizes[best]
        key = np.unique(key * sizes[best] + pool[:, best], return_inverse=True)[1]
        told = tried[best]
    return heads


def _told(key: Int64, own: Int64, size: int) -> tuple[float, float]:
    """Return what a key tells of a feature, in nats per row, and how much of it is chance."""
    keys, totals = np.unique(key, return_counts=True)
    both = np.unique(key * size + own, return_counts=True)[1]
    rows = len(own)
    alone = np.bincount(own)
    alone = alone[alone > 0]
    mutual = np.sum(both * np.log(both)) - np.sum(totals * np.log(totals))
    mutual -= np.sum(alone * np.log(alone / rows))
    return float(mutual) / rows, (len(both) - len(keys)) / (2 * rows)


def _meets(rows: Int64, parts: Mapping[int, frozenset[int]]) -> NDArray[np.bool_]:
    met = np.ones(len(rows), dtype=bool)
    for place, codes in parts.items():
        met &= np.isin(rows[:, place], sorted(codes))
    return met


def _among(allowed: NDArray[np.bool_], shares: Float64, words: Words) -> Int64:
    """Draw a category among those that are allowed; where the pool has none, all are as likely."""
    odds = np.where(allowed, shares, 0.0)
    odds = np.where(odds.any(axis=1, keepdims=True), odds, allowed)
    reached = np.cumsum(odds, axis=1)
    ends = np.nextafter(reached[:, -1], 0)
    points = np.minimum(uniforms(words.take(len(odds))) * reached[:, -1], ends)
    drawn: Int64 = np.minimum((reached <= points[:, None]).sum(axis=1), odds.shape[1] - 1)
    return drawn
