"""Draws of all arms: what they cost, where they start, and that they are the library's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods import names
from pegsynth.methods.session import Session
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.random import RandomStream
from pegsynth.tables.table_input import open_table
from studies.paper.arms import Arm, request_of
from studies.paper.populations import built_in, of_user
from studies.paper.size import FULL, QUICK, TINY
from studies.paper.study_design import (
    PAPER,
    StudyDesign,
    design_of,
    other_population,
    total_name,
)
from studies.paper.workshop import FRESH, Population, Workshop, with_heads

SCHEMA = discharge_schema()
ROWS = 50


@pytest.fixture(scope="module")
def population() -> Population:
    frame = discharge(800, 1)
    pool, fresh = (encode(discharge(200, seed), SCHEMA) for seed in (2, 3))
    return Population(SCHEMA, frame, encode(frame, SCHEMA), pool, fresh)


@pytest.fixture(scope="module")
def workshop(population) -> Workshop:
    return Workshop({"main": population}, model_rows=150)


def drawn(workshop: Workshop, arm: Arm, level: float | None, seed: str = "s"):
    return workshop.draw(arm, level, ROWS, RandomStream(seed))


@pytest.mark.parametrize("method", ["pegs", "pegs-rs"])
def test_a_draw_is_the_librarys_own(workshop, population, method: str) -> None:
    arm = Arm("a", method, pool="uniform")
    found = drawn(workshop, arm, 5.0)
    plan = workshop.plan(arm, 5.0, ROWS)
    request = Request(method="pegs", heads=2, tail_bits=1, order="data", threads=1)
    counted = Settled(SCHEMA, request, None)
    model = fit(open_table(population.frame), counted, RandomStream("x"))
    chunks = Session(model, plan, RandomStream("s")).draw(ROWS)[0]
    assert (found.codes == np.concatenate(list(chunks))).all()


@pytest.mark.parametrize("method", [*PAPER, "contingency"])
def test_a_price_per_row_is_a_total_of_all_rows(workshop, method: str) -> None:
    found = drawn(workshop, Arm("a", method), 1.0)
    assert found.epsilon == pytest.approx(ROWS, rel=1e-3)
    assert found.epsilon <= ROWS
    assert found.codes.shape == (ROWS, 13)


def test_alpha_is_that_of_the_paper(workshop) -> None:
    for method, factor in (("pegs", 1), ("pmi", 1), ("pegs-rs", 10)):
        found = drawn(workshop, Arm("a", method), 1.0)
        assert found.alpha == pytest.approx(1 / math.expm1(factor / 13), rel=1e-5)


@pytest.mark.parametrize("method", ["pegs-capped", "marginal"])
def test_methods_without_a_price_per_row_get_the_same_total(workshop, method: str) -> None:
    pool = "public" if method == "pegs-capped" else "default"
    order = "data" if method == "pegs-capped" else "default"
    found = drawn(workshop, Arm("a", method, "rows", pool=pool, order=order), 0.5)
    assert 0.9 * 0.5 * ROWS <= found.epsilon <= 0.5 * ROWS


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pegs-capped", "pmi", "contingency"])
@pytest.mark.parametrize("delta", [None, 1e-9])
def test_a_total_is_kept_whatever_the_method_pays_for(workshop, method: str, delta) -> None:
    arm = Arm("a", method, "total", pool="default", order="default", delta=delta)
    found = drawn(workshop, arm, 3.0)
    assert found.epsilon == pytest.approx(3.0, rel=1e-3)
    assert found.epsilon <= 3.0


@pytest.mark.parametrize("method", ["bootstrap", "mi", "cart"])
def test_methods_without_a_proof_have_no_price(workshop, method: str) -> None:
    found = drawn(workshop, Arm("a", method, "none"), None)
    assert math.isnan(found.epsilon)
    assert len(found.codes) == ROWS


def test_bootstrap_rows_are_original_and_fresh_rows_are_not_drawn_twice(workshop, population):
    held = {tuple(row) for row in population.codes.tolist()}
    boot = drawn(workshop, Arm("a", "bootstrap", "none"), None)
    assert all(tuple(row) in held for row in boot.codes.tolist())
    fresh = drawn(workshop, Arm("a", FRESH, "none"), None)
    order = [tuple(row) for row in population.fresh.tolist()]
    assert all(tuple(row) in order for row in fresh.codes.tolist())


def test_seed_rows_come_from_the_pool(workshop, population) -> None:
    """With one feature left to draw, the others are those of the seed rows."""
    ready = workshop.prepared(Arm("a", "pegs"), 1.0, ROWS, RandomStream("s"))
    start = ready.pool.draw(100, RandomStream("t").substream().take)
    held = {tuple(row) for row in population.pool.tolist()}
    assert all(tuple(row) in held for row in start.tolist())
    own = workshop.prepared(Arm("a", "pegs", pool="original"), 1.0, ROWS, RandomStream("s"))
    rows = own.pool.draw(100, RandomStream("t").substream().take)
    assert all(tuple(row) in {tuple(r) for r in population.codes.tolist()} for row in rows.tolist())


def test_chains_keep_their_alpha_whatever_their_length(workshop) -> None:
    for reset in (True, False):
        arm = Arm("a", "pegs-rs", "chain", epsilon=20.0, reset=reset)
        alphas = {round(drawn(workshop, arm, length).alpha, 9) for length in (1.0, 10.0, 25.0)}
        assert alphas == {round(workshop.plan(arm, 10.0, ROWS).numerator / 2**20, 9)}


def test_the_first_row_of_a_chain_is_the_same_with_and_without_reset(workshop) -> None:
    arms = [Arm("a", "pegs-rs", "chain", epsilon=20.0, reset=r) for r in (True, False)]
    first, second = (drawn(workshop, arm, 25.0).codes for arm in arms)
    assert (first[0] == second[0]).all()
    assert not (first == second).all()


def test_failed_fits_fail_again_at_once(population) -> None:
    workshop = Workshop({"main": population}, model_rows=150)
    calls = []

    def fails() -> None:
        calls.append(1)
        raise BudgetError("no")

    for _ in range(2):
        with pytest.raises(BudgetError, match="no"):
            workshop._once("key", fails)
    assert calls == [1]


def test_heads_from_public_rows_are_the_most_informative(population) -> None:
    schema = with_heads(SCHEMA, population.pool)
    assert all(len(feature.heads) == 12 for feature in schema.features)
    assert schema.category_counts == SCHEMA.category_counts
    race = schema.features[schema.index("race")]
    assert "ethncty" in race.heads[:2]


def test_levels_go_with_axes() -> None:
    with pytest.raises(ParameterError, match="a level goes"):
        request_of(Arm("a", "pegs"), None, 10, seed_pool=None)
    with pytest.raises(ParameterError, match="a level goes"):
        request_of(Arm("a", "bootstrap", "none"), 1.0, 10, seed_pool=None)


@pytest.mark.parametrize("size", [FULL, QUICK, TINY])
def test_the_design_names_every_cell_once(size) -> None:
    design = design_of(size)
    names = [cell.name for cell in design.cells()]
    assert len(set(names)) == len(names)
    assert design.main.name == "public"
    for epsilon in size.epsilons:
        for method in PAPER:
            for pool in ("public", "uniform", "original"):
                assert f"{method}, {pool} | {epsilon!r} | 0" in names


def test_every_method_joins_the_study() -> None:
    design: StudyDesign = design_of(FULL)
    assert {arm.method for arm in design.arms.values()} == {*names(), FRESH}
    budgeted = {arm.method for arm in design.families["totals"].arms}
    assert {"pegs", "pegs-rs", "pmi", "pegs-capped", "contingency", "marginal"} <= budgeted
    assert total_name("pegs", 1e-9) in design.arms


def test_built_in_tables_share_pool_and_hold_out_but_no_rows() -> None:
    tables = built_in(TINY, 1)
    assert set(tables) == {"main", *map(other_population, TINY.other_rows_in)}
    main = tables["main"]
    assert len(main.codes) == TINY.rows_in
    assert len(main.pool) == TINY.pool_rows
    assert not np.array_equal(main.codes[:100], main.pool[:100])
    assert not np.array_equal(main.fresh[:100], main.pool[:100])


def test_a_users_table_is_dealt_to_original_pool_and_hold_out() -> None:
    frame = discharge(500, 4)
    main = of_user(frame, SCHEMA, 1)["main"]
    assert [len(main.codes), len(main.pool), len(main.fresh)] == [400, 50, 50]
    together = np.concatenate([main.codes, main.pool, main.fresh])
    assert sorted(map(tuple, together.tolist())) == sorted(
        map(tuple, encode(frame, SCHEMA).tolist())
    )
    assert (encode(main.frame, main.schema) == main.codes).all()
