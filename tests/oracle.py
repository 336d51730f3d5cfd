"""Slow, obvious twins of the sampler, in exact rational arithmetic.

Everything here works on raw rows and follows the definitions of docs/maths.md word for
word; nothing is shared with the shipped code but the table of public tail bits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from pegsynth.auditing.divergence import Loss, neighbours, worst_of
from pegsynth.methods.gibbs.spec import HashSpec, tail_codes
from pegsynth.schema import Rule

Row = tuple[int, ...]


def worst_loss(distribution, category_counts, most_rows, *, rows_per_unit=1) -> Loss:
    """The worst figures over all small tables and their neighbours."""
    pairs = neighbours(category_counts, most_rows, rows_per_unit=rows_per_unit)
    return worst_of(distribution, pairs)


def slow_key(spec: HashSpec, target: int, row: Sequence[int]) -> tuple[Row, int]:
    """Heads in clear and the XOR of the public bits of all other features but the target."""
    codes = tail_codes(spec.category_counts, spec.tail_bits)
    start = [sum(spec.category_counts[:i]) for i in range(len(row))]
    tail = 0
    for feature, code in enumerate(row):
        if feature != target and feature not in spec.heads[target]:
            tail ^= int(codes[start[feature] + code])
    return tuple(row[head] for head in spec.heads[target]), tail


def forbidden(rules: Sequence[Rule], target: int, row: Sequence[int], code: int) -> bool:
    trial = list(row)
    trial[target] = code
    return any(all(trial[f] in codes for f, codes in rule.forbidden) for rule in rules)


class SlowSampler:
    """Exact distribution of chains over perturbed blocks, by the definitions.

    `alpha[i][j]` are virtual rows; `diversity[i] = l` replaces them by the smallest
    multiple of 1/scale that makes the (restricted) entry l-diverse.
    """

    def __init__(
        self,
        data: Sequence[Row],
        spec: HashSpec,
        alpha: Sequence[Sequence[Fraction]],
        *,
        rules: Sequence[Rule] = (),
        diversity: dict[int, float] | None = None,
        scale: int = 1,
        weights: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.spec, self.alpha, self.rules = spec, alpha, rules
        self.diversity, self.scale = diversity or {}, scale
        self.counts: list[dict[tuple[Row, int], Counter[int]]] = []
        self.weights = weights or [[1] * c for c in spec.category_counts]
        for target in range(len(spec.category_counts)):
            table: dict[tuple[Row, int], Counter[int]] = {}
            for row in data:
                table.setdefault(slow_key(spec, target, row), Counter())[row[target]] += 1
            self.counts.append(table)

    def conditional(
        self, target: int, row: Sequence[int], *, exhausted: bool = False
    ) -> dict[int, Fraction]:
        """P(x_target = j | key), restricted to what the rules allow."""
        categories = range(self.spec.category_counts[target])
        allowed = [j for j in categories if not forbidden(self.rules, target, row, j)]
        counts = self.counts[target].get(slow_key(self.spec, target, row), Counter())
        weight = {j: Fraction(self.weights[target][j]) for j in allowed}
        if not exhausted and any(counts[j] for j in allowed):
            alpha = {j: self.alpha[target][j] for j in allowed}
            if target in self.diversity:
                alpha = self._diverse(target, counts, allowed, self.diversity[target])
            if alpha is not None:
                weight = {j: counts[j] + alpha[j] for j in allowed}
        total = sum(weight.values())
        return {j: w / total for j, w in weight.items() if w}

    def _diverse(self, target, counts, allowed, level):
        if level >= len(allowed):
            return None
        for numerator in range(1 << 14):
            alpha = {j: Fraction(numerator * self.weights[target][j], self.scale) for j in allowed}
            total = sum(counts[j] + alpha[j] for j in allowed)
            shares = [float((counts[j] + alpha[j]) / total) for j in allowed]
            if -sum(p * math.log(p) for p in shares if p) >= math.log(level):
                return alpha
        raise AssertionError("no alpha found")

    def table(
        self, seeds: Sequence[Row], rows: int, *, chain_rows=1, sweeps=1, limit=0, targets=None
    ) -> dict[tuple[Row, ...], Fraction]:
        """Exact probability of every table of `rows` rows."""
        targets = range(len(self.spec.category_counts)) if targets is None else targets
        steps = [(r, t) for r in range(rows) for _ in range(sweeps) for t in targets]
        out: Counter[tuple[Row, ...]] = Counter()

        def go(step, shown, row, visits, mass):
            if step == len(steps):
                out[(*shown, tuple(row))] += mass
                return
            number, target = steps[step]
            if step == 0 or number != steps[step - 1][0]:
                if step:
                    shown = (*shown, tuple(row))
                if number % chain_rows == 0:
                    row, visits = list(seeds[number // chain_rows]), Counter()
            entry = (target, slow_key(self.spec, target, row))
            answers = self.conditional(
                target, row, exhausted=bool(limit) and visits[entry] >= limit
            )
            for code, share in answers.items():
                after = list(row)
                after[target] = code
                go(step + 1, shown, after, visits + Counter([entry]), mass * share)

        go(0, (), None, Counter(), Fraction(1))
        return dict(out)
