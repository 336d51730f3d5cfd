"""A small table, its reviewed schema, and sessions on it, for tests of whole releases."""

from __future__ import annotations

import numpy as np
import polars as pl

from pegsynth.io.read import open_table
from pegsynth.options import DrawOptions, FitOptions
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.synthesizers.model import fit
from pegsynth.synthesizers.recipe import make_recipe
from pegsynth.synthesizers.session import Session

LEVELS = {"a": ("x", "y", "z"), "b": ("p", "q", "r", "s"), "c": ("0", "1")}
PERSON = Feature("person", role="identifier")


def small_schema(*, rows_per_unit=0, reviewed=True):
    columns = [Feature(name, categories=levels) for name, levels in LEVELS.items()]
    if rows_per_unit:
        return Schema((*columns, PERSON), "person", rows_per_unit, reviewed=reviewed)
    return Schema(tuple(columns), reviewed=reviewed)


def small_table(rows=80, *, seed=1, units=0):
    """Return a frame without the last level of each feature; `units` people, or none."""
    words = np.random.default_rng(seed)
    columns = {
        name: [levels[i] for i in words.integers(0, len(levels) - 1, rows)]
        for name, levels in LEVELS.items()
    }
    if units:
        columns["person"] = [f"id{i}" for i in words.integers(0, units, rows)]
    return pl.DataFrame(columns)


def small_model(book=None, data=None, *, seed: int | None = 1, fitted=None, **options):
    """Return a model and its recipe."""
    budget = {k: options.pop(k) for k in Budget.__dataclass_fields__ if k in options}
    book = small_schema() if book is None else book
    draw = DrawOptions(**({"rows": 100} | options))
    settled = make_recipe(book, Budget(**budget), fitted or FitOptions(), draw)
    data = small_table() if data is None else data
    return fit(open_table(data), book, settled, RandomStream(seed)), settled


def small_session(*, seed: int | None = 1, spent=None, threads=1, **options):
    """Return a session on a small model."""
    model, settled = small_model(seed=seed, **options)
    return Session(model, settled, RandomStream(seed), spent=spent, threads=threads)


def taken(session, rows, datasets=1):
    """Draw and return whole tables of codes."""
    return [np.concatenate(list(chunks)) for chunks in session.draw(rows, datasets)]
