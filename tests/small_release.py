"""A small table, its reviewed schema, and sessions on it, for tests of whole releases."""

from __future__ import annotations

import numpy as np
import polars as pl

from pegsynth.methods import get
from pegsynth.methods.session import Session
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.tables.table_input import open_table

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


def settled_plan(book, budget=None, method="pegs", *, scale=None, **options):
    """Return the plan of a method; options and budget by keyword, or a whole `Budget`."""
    chosen = get(method)
    stated = {k: options.pop(k) for k in Budget.__dataclass_fields__ if k in options}
    budget = budget or Budget(**stated)
    more = {} if scale is None else {"scale": scale}
    asked = Request(method=method, **options).options_for(chosen)
    return chosen.settle(book, budget, asked, **more)


def fitted_model(data, book, plan, stream, **more):
    """Fit a table under a plan."""
    request = Request(method=plan.method, threads=more.pop("threads", 1))
    return fit(open_table(data), Settled(book, request, plan), stream, **more)


def small_model(book=None, data=None, *, seed: int | None = 1, **options):
    """Return a model and its plan."""
    book = small_schema() if book is None else book
    plan = settled_plan(book, **({"rows": 100} | options))
    data = small_table() if data is None else data
    model = fitted_model(data, book, plan, RandomStream(seed))
    return model, model.plan


def small_session(*, seed: int | None = 1, spent=None, threads=1, **options):
    """Return a session on a small model."""
    model, plan = small_model(seed=seed, **options)
    return Session(model, plan, RandomStream(seed), spent=spent, threads=threads)


def taken(session, rows, datasets=1):
    """Draw and return whole tables of codes."""
    return [np.concatenate(list(chunks)) for chunks in session.draw(rows, datasets)]
