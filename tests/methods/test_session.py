"""Drawing from a model: charged first, refused beyond the budget, never copied."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.methods.gibbs.samplers import trace_row
from pegsynth.methods.registry import PegsRsOptions
from pegsynth.methods.session import Session, Spent
from pegsynth.privacy import BlockDraws, CappedDraws, PegsDraws
from pegsynth.random import RandomStream
from significance import ALPHA
from small_release import small_model, small_session, taken

BUDGETS = {
    "pegs": {"epsilon": 50.0, "rows": 30, "method": "pegs"},
    "pegs-rs": {"epsilon": 50.0, "rows": 30, "method": "pegs-rs"},
    "pegs-capped": {
        "epsilon": 50.0,
        "rows": 30,
        "method": "pegs-capped",
        "visits": 6,
        "urn": False,
    },
    "per row": {"epsilon_per_row": 1.0, "rows": 30},
    "alpha": {"alpha": 1.0, "rows": 30},
    "l": {"l": 1.5, "rows": 30},
}

# The budget


@pytest.mark.parametrize("datasets", [1, 3])
def test_rows_are_counted_until_none_are_left(datasets):
    session = small_session(**BUDGETS["pegs"], datasets=datasets)
    assert session.left() == 30 * datasets
    taken(session, 25, datasets)
    assert session.left() == 5 * datasets
    with pytest.raises(BudgetError, match=f"covers {5 * datasets} more rows and 31 were asked"):
        session.draw(31)
    assert session.spent.rows == 25 * datasets
    taken(session, 5 * datasets)
    assert session.left() == 0
    with pytest.raises(BudgetError, match="covers 0 more rows and 1 were"):
        session.draw(1)


def test_blocks_are_counted_whole():
    session = small_session(epsilon=50.0, rows=31, method="pegs-rs", block_size=10)
    assert session.left() == 40
    taken(session, 1)
    assert (session.spent.rows, session.spent.blocks) == (1, 1)
    assert session.left() == 30
    taken(session, 11)
    assert session.left() == 10
    with pytest.raises(BudgetError, match="covers 10 more rows"):
        session.draw(1, 2)
    taken(session, 10)
    with pytest.raises(BudgetError):
        session.draw(1)


@pytest.mark.parametrize("kind", ["pegs-capped", "per row", "alpha", "l"])
def test_some_budgets_have_no_limit(kind):
    session = small_session(**BUDGETS[kind])
    assert session.left() is None
    assert len(taken(session, 100)[0]) == 100
    assert len(taken(session, 100, 2)) == 2


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize(("rows", "datasets"), [(-20, 1), (0, 1), (1.5, 1), (True, 1), (5, 0)])
def test_a_draw_of_less_than_a_row_gives_no_budget_back(kind, rows, datasets):
    session = small_session(**BUDGETS[kind])
    taken(session, 7)
    before = (session.spent.rows, session.spent.blocks, session.left())
    with pytest.raises(ParameterError, match="at least 1"):
        session.draw(rows, datasets)
    assert (session.spent.rows, session.spent.blocks, session.left()) == before


def test_a_draw_is_charged_before_it_is_consumed():
    session = small_session(**BUDGETS["pegs"])
    session.draw(30)
    assert session.left() == 0


# The ledger


def test_the_ledger_of_a_total_covers_all_draws_from_the_start():
    for kind in ("pegs", "pegs-rs", "pegs-capped"):
        session = small_session(seed=None, **BUDGETS[kind])
        before = session.ledger
        assert before.guarantee.kind == "pure"
        assert 49 < before.epsilon <= 50
        taken(session, 10)
        assert session.ledger == before


@pytest.mark.parametrize("budget", [{"epsilon_per_row": 0.5}, {"alpha": 2.0}])
def test_without_a_total_the_price_follows_the_rows(budget):
    session = small_session(seed=None, rows=4, **budget)
    at_first = session.ledger.epsilon
    taken(session, 4)
    assert session.ledger.epsilon == at_first
    taken(session, 4, 2)
    assert session.ledger.epsilon == pytest.approx(3 * at_first)
    event = session.ledger.events[-1]
    assert isinstance(event, PegsDraws)
    assert event.rows * event.datasets == 12


def test_without_a_total_blocks_are_charged_whole():
    session = small_session(seed=None, epsilon_per_row=0.5, rows=4, method="pegs-rs", block_size=5)
    one = session.ledger.epsilon
    taken(session, 1)
    taken(session, 6)
    assert session.ledger.epsilon == pytest.approx(3 * one)
    event = session.ledger.events[-1]
    assert isinstance(event, BlockDraws)
    assert event.blocks == 3


def test_a_cap_costs_the_same_whatever_is_drawn():
    session = small_session(seed=None, alpha=1.0, rows=4, method="pegs-capped", visits=3)
    before = session.ledger.epsilon
    taken(session, 500)
    assert session.ledger.epsilon == before
    assert isinstance(session.ledger.events[-1], CappedDraws)


def test_a_seed_takes_the_guarantee_away():
    session = small_session(seed=3, **BUDGETS["pegs"])
    assert session.ledger.guarantee.kind == "none"
    assert any("seed" in line for line in session.ledger.not_covered)


# Visit counters


def test_counters_carry_over_and_stay_within_the_cap():
    session = small_session(**BUDGETS["pegs-capped"])
    limits = 6
    before = np.zeros_like(session.spent.counters[0], dtype=np.int64)
    for rows, datasets in ((10, 1), (40, 2), (200, 1)):
        taken(session, rows, datasets)
        now = np.sum(session.spent.counters, axis=0, dtype=np.int64)
        assert (now >= before).all()
        assert now.max() <= limits
        before = now
    assert before.max() == limits


def test_a_trace_counts_its_visits():
    session = small_session(**BUDGETS["pegs-capped"])
    counters, limit = session.sampler.first_chain()
    assert counters is session.spent.counters[0]
    assert limit == 2  # 6 visits over 4 chains: 2, 2, 1, 1
    ready = session.sampler
    for _ in range(30):
        trace_row(ready.machine, ready.pool, 1, RandomStream(1), counters=counters, limit=limit)
    assert session.spent.counters[0].max() == limit
    assert not any(line.any() for line in session.spent.counters[1:])


def test_a_trace_of_a_block_asks_every_entry_once():
    """Several sweeps of one row are one block: each entry answers from its counts once (R4)."""
    session = small_session(alpha=0.001, rows=10, method="pegs-rs", sweeps=60)
    counters, limit = session.sampler.first_chain()
    assert limit == 1
    assert counters is not None
    ready = session.sampler
    _, steps = trace_row(
        ready.machine, ready.pool, 60, RandomStream(1), counters=counters, limit=limit
    )
    assert len(steps) == 180
    assert counters.max() == 1
    # Levels that no row holds are drawn once the entries have answered.
    absent = {(0, 2), (1, 3), (2, 1)}
    drawn = {(step.feature, step.row[step.feature]) for step in steps[90:]}
    assert drawn & absent
    assert session.sampler.first_chain()[0] is not counters


def test_a_trace_of_pegs_is_free_of_counters():
    assert small_session(**BUDGETS["pegs"]).sampler.first_chain() == (None, 0)


def test_capped_rows_are_dealt_to_datasets_by_a_permutation():
    """Later rows of a chain are flatter; every dataset gets its share of them (R13)."""
    session = small_session(
        alpha=1e-6, rows=400, method="pegs-capped", visits=40, chains=1, heads=0, tail_bits=0
    )
    first, second = taken(session, 400, 2)
    absent = [
        sum(int((table[:, f] == code).sum()) for f, code in ((0, 2), (1, 3), (2, 1)))
        for table in (first, second)
    ]
    total = sum(absent)
    assert total > 100
    # Undealt, the first dataset would hold far fewer of them than the second.
    spread = 3 * np.sqrt(total) * np.sqrt(-np.log10(ALPHA))
    assert abs(absent[0] - absent[1]) < spread < total


@pytest.mark.parametrize("kind", ["pegs", "pegs-rs", "pegs-capped"])
def test_threads_change_nothing(kind):
    tables = [taken(small_session(**BUDGETS[kind], threads=t), 25) for t in (1, 3)]
    assert np.array_equal(*[table[0] for table in tables])


# What is handed in


@pytest.mark.parametrize(
    "counters",
    [
        (),
        (np.zeros(3, dtype=np.uint32),) * 4,
        "one chain too few",
        "one chain too many",
    ],
    ids=["none", "wrong length", "too few", "too many"],
)
def test_counters_of_another_model(counters):
    model, settled = small_model(**BUDGETS["pegs-capped"])
    own = Session(model, settled, RandomStream(1)).spent.counters
    if isinstance(counters, str):
        counters = own[1:] if "few" in counters else (*own, own[0])
    with pytest.raises(ModelError, match="counters do not belong"):
        Session(model, settled, RandomStream(1), spent=Spent(5, 1, counters=counters))


def test_counters_where_there_is_no_cap():
    model, settled = small_model(**BUDGETS["pegs"])
    with pytest.raises(ModelError, match="counters"):
        Session(model, settled, RandomStream(1), spent=Spent(counters=(np.zeros(3, np.uint32),)))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(duplicate):
    session = small_session(**BUDGETS["pegs-capped"])
    with pytest.raises(TypeError, match="count twice"):
        duplicate(session)


FORK = """
import os, sys
sys.path.insert(0, {tests!r})
from small_release import small_session
from pegsynth.errors import BudgetError
session = small_session(epsilon=5.0, rows=10)
child = os.fork()
if not child:
    try:
        session.draw(1)
    except BudgetError as error:
        os._exit(0 if "forked" in str(error) else 3)
    os._exit(4)
assert os.waitpid(child, 0)[1] == 0
session.draw(10)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_cannot_spend_the_budget_again():
    script = FORK.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("name", ["datasets", "sweeps", "block_size"])
def test_options_that_must_be_numbers(name):
    """A damaged model file may say null."""
    with pytest.raises(ParameterError, match="at least 1"):
        PegsRsOptions(rows=5, **{name: None})
