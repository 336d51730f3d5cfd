"""Run every kind of work once, so that every kernel is compiled or loaded.

``python -m checks.bench.every_kernel`` takes what the paper describes: both samplers,
l-diversity, its order, tabulated and listed blocks, 8-bit and 16-bit codes. With ``--all``
it goes on with all other methods and with evaluation. ``NUMBA_CACHE_DIR`` may name the cache
to fill.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pegsynth import evaluate, synthesize
from pegsynth.codec.codec import encode
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.spec import HashSpec

ROWS = 200
OTHERS: tuple[tuple[str, dict[str, object]], ...] = (
    ("pegs-capped", {"epsilon": 5.0, "urn": False}),
    ("pegs-capped", {"epsilon": 5.0, "urn": True}),
    ("pegs-once", {"epsilon": 5.0}),
    ("pegs-once", {"epsilon": 5.0, "delta": 1e-6}),
    ("contingency", {"epsilon_per_row": 1.0}),
    ("marginal", {"epsilon": 5.0}),
    ("bootstrap", {}),
    ("mi", {}),
    ("pmi", {"alpha": 1.0}),
    ("cart", {}),
    ("forest", {}),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="checks.bench.every_kernel", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all methods, and evaluation")
    options = parser.parse_args()
    papers_methods()
    if options.all:
        other_methods()


def papers_methods() -> None:
    """Use the kernels of ``pegs`` and ``pegs-rs``."""
    table, schema = discharge(ROWS, seed=1), discharge_schema()
    budgets: list[dict[str, float]] = [{"epsilon_per_row": 1.0}, {"l": 1.5}]
    for method, budget in product(("pegs", "pegs-rs"), budgets):
        synthesize(table, schema, rows=ROWS, method=method, order="data", **budget)
    with TemporaryDirectory() as folder:
        pool = Path(folder) / "pool.parquet"
        table.write_parquet(pool)
        synthesize(table, schema, rows=ROWS, alpha=1.0, seed_pool=pool, heads=5)
    spec = HashSpec(schema.names, schema.category_counts, public_heads(schema, 2))
    for dtype, limit in product((np.uint8, np.uint16), (None, 0)):
        codes = encode(table, schema).astype(dtype)
        count_pairs([codes], schema.category_counts)
        disintegrate([codes], spec, most_dense_cells=limit)


def other_methods() -> None:
    """Use the kernels of all other methods and of evaluation."""
    table, schema = discharge(ROWS, seed=1), discharge_schema()
    for method, options in OTHERS:
        release = synthesize(table, schema, rows=ROWS, method=method, **options)
    evaluate(table, release.frames, schema)


if __name__ == "__main__":
    main()
