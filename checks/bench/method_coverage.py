"""How often intervals of the paper's methods with a guarantee hold the truth.

Invented discharges are released through `pegsynth.synthesize` as users do it, with five
tables of as many rows, and analysed by the rule that fitted such tables before there were
virtual rows: `plug-in`, or `shared-urn` where tables share urns. What the intervals leave out
is the pull of the virtual rows and the noise of paid marginals, which all tables share.
``python -m checks.bench.coverage --only methods`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

from checks.bench.coverage_populations import Population
from checks.bench.coverage_tally import Interval, Release
from checks.bench.released_coverage import DELTA, usual_width
from pegsynth import synthesize
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.inference import combine
from pegsynth.privacy.draw_events import UrnDraws

METHODS = ("pegs", "pegs-rs", "pegs-capped", "pmi", "marginal", "contingency")
EPSILONS = (1.0, 10.0, 100.0)
DATASETS = 5


def measure(population: Population, which: Release) -> Iterator[Interval]:
    """Yield the intervals of one release; widths are multiples of the original's own."""
    schema, rows = discharge_schema(), which.rows
    table = discharge(rows, seed=which.seed)
    released = synthesize(
        table,
        schema,
        method=which.method,
        epsilon=which.epsilon,
        delta=DELTA,
        rows=rows,
        rows_in=rows,
        datasets=DATASETS,
        seed=which.seed,
        progress=False,
    )
    original, frames = encode(table, schema), [encode(each, schema) for each in released.frames]
    urns = [event for event in released.ledger.events if isinstance(event, UrnDraws)]
    shared = any(event.urns < event.datasets for event in urns)
    rule = "shared-urn" if shared else "plug-in"
    for statistic, value in zip(population.wanted, population.true, strict=True):
        tables = [statistic.counted(codes) for codes in frames]
        result = combine(
            [statistic.of(each) for each in tables],
            [statistic.variance(each, rows) for each in tables],
            rule=rule,
            rows=rows,
            rows_in=rows,
        )
        low, high = result.interval(0.95)
        width = (high - low) / usual_width(statistic, original)
        yield Interval(statistic.group, rule, bool(low <= value <= high), width)
