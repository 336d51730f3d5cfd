"""Run every kind of work once, so that every kernel is compiled or loaded.

Both samplers, l-diversity, the paper's order, tabulated and listed blocks, 8-bit and
16-bit codes. Run as a program, with ``NUMBA_CACHE_DIR`` pointing at the cache to fill.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pegsynth import synthesize
from pegsynth.blocks import disintegrate
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.hashing import HashSpec, count_pairs, public_heads
from pegsynth.schema.codec import encode

ROWS = 200


def main() -> None:
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


if __name__ == "__main__":
    main()
