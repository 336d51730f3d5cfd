"""The model file of released blocks: shareable, complete, and nothing but paid numbers (R11)."""

import re
import shutil
from dataclasses import fields, replace
from functools import partial

import msgspec
import numpy as np
import polars as pl
import pytest

from checks.fuzz.containers import taken_apart
from contract import contract_schema, contract_table
from pegsynth.auditing.paths import Replay, WatchedFilter
from pegsynth.errors import ModelError, ParameterError
from pegsynth.methods import get
from pegsynth.methods.ledgers import seeded_ledger
from pegsynth.methods.released import Work, _pegs_once, _release
from pegsynth.methods.released._stored import loaded_released, stored_released
from pegsynth.methods.session import Session
from pegsynth.methods.stored_model import StoredModel
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.privacy import NoisyCounts, Selection, Unspent
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.storage.model_file import SHAREABLE, UNCOVERED, load_model, read_manifest, save_model
from pegsynth.tables.table_input import open_table

ONCE = get("pegs-once")


@pytest.fixture
def without_residuals(monkeypatch):
    """Releases by chosen blocks, also where all pairs are quiet enough to be measured (R27)."""
    steps_of = _release.steps_of
    monkeypatch.setattr(_release, "steps_of", lambda plan: replace(steps_of(plan), residuals=False))


def once_model(data=None, schema=None, *, seed=1, rows=200, accept=False, **budget):
    schema = contract_schema() if schema is None else schema
    stated = Request(method="pegs-once", **({"epsilon": 10.0} | budget)).budget
    plan = ONCE.settle(schema, stated, ONCE.options(rows=rows))
    data = contract_table() if data is None else data
    request = Request(method="pegs-once", threads=1, accept_unreviewed_schema=accept)
    return fit(open_table(data), Settled(schema, request, plan), RandomStream(seed))


def drawn(model, rows, *, seed=4, **options):
    """Rows drawn from what is released alone, as a model from a file does."""
    model = replace(model, content=replace(model.content, ready=None))
    plan = replace(model.plan, options=replace(model.plan.options, rows=rows, **options))
    (chunks,) = Session(model, plan, RandomStream(seed)).draw(rows)
    return np.concatenate(list(chunks))


def test_a_feature_too_wide_to_stay_as_it_is_is_refused():
    """Its levels would not fit into 16 bits; merged with others they do."""
    wide = Feature("w", categories=tuple(map(str, range(70_000))))
    narrow = Feature("x", categories=("a", "b"))
    schema = Schema((wide, narrow), reviewed=True)
    budget, options = Request(method="pegs-once", epsilon=1.0).budget, ONCE.options(rows=5)
    ONCE.settle(schema, budget, options)
    ruled = replace(schema, rules=(Rule.of({0: [1], 1: [1]}),))
    with pytest.raises(ParameterError, match=r"'w'.*65535"):
        ONCE.settle(ruled, budget, options)
    given = replace(options, where=(("w", "7"),))
    with pytest.raises(ParameterError, match=r"'w'.*65535"):
        ONCE.settle(schema, budget, given)


# The same noisy numbers, the same file


@pytest.fixture
def watched(monkeypatch):
    """Let a privacy filter look on in every fit; return how to set its answers, and the filters."""
    filters = []

    def use(answer):
        def filter_of(*arguments, **options):
            filters.append(WatchedFilter(*arguments, answer=answer, **options))
            return filters[-1]

        monkeypatch.setattr(_pegs_once, "Work", partial(Work, filter_of=filter_of))

    return use, filters


def far_away(event, inputs):
    """Noise that takes every count far from the true one, and choices of the middle."""
    if isinstance(event, Selection):
        return (len(inputs) // 2,)
    return tuple(3 * n + 500_000 + 17 * cell for cell, n in enumerate(inputs))


@pytest.mark.parametrize("budget", [{}, {"delta": 1e-9}], ids=str)
def test_two_tables_with_the_same_noisy_numbers_give_the_same_bytes(tmp_path, watched, budget):
    use, filters = watched
    schema = contract_schema()
    use(far_away)
    save_model(once_model(contract_table(331), schema, **budget), tmp_path / "one.pegs")
    use(Replay(filters[0].steps).answer)
    other = contract_table(57, seed=9).with_columns(a=pl.lit("z"))
    save_model(once_model(other, schema, **budget), tmp_path / "two.pegs")
    one, two = ((tmp_path / name).read_bytes() for name in ("one.pegs", "two.pegs"))
    assert one == two
    ours, theirs = ([step.inputs for step in budget_filter.steps] for budget_filter in filters)
    assert ours != theirs


def test_other_noisy_numbers_give_another_file(tmp_path):
    for name in ("one", "two"):
        save_model(once_model(seed=name), tmp_path / name)
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_the_file_holds_no_true_count(tmp_path, watched):
    """The noise here takes every number far away, so that a true one could not hide."""
    use, filters = watched
    use(far_away)
    rows = 7919
    save_model(once_model(contract_table(rows)), path := tmp_path / "m.pegs")
    true = {
        count
        for step in filters[0].steps
        if isinstance(step.event, NoisyCounts)
        for count in step.inputs
        if count > 100
    }
    assert rows in true
    assert len(true) > 30
    model = load_model(path)
    stored = ONCE.store(model.content)
    held = stored.under("released: ")
    assert set(held) == {
        *("total", "deviations", "kinds", "widths", "features", "counts"),
        *("ordered", "levels", "order"),
        *(set(held) & {"public", "loud"}),
    }
    for name, array in held.items():
        assert not true & set(array.ravel().tolist()), name
    text = msgspec.json.encode(read_manifest(path)).decode()
    # The digits of a commit or a digest are no counts, and may be any number.
    text = re.sub(r"(?<![0-9a-f])([0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])", "", text)
    numbers = set(map(int, re.findall(r"(?<![\d.])\d{3,9}(?![\d.])", text)))
    assert not true & numbers
    # No cells, no marginals, no rows: only the arrays of what was released.
    arrays = taken_apart(path.read_bytes()).header["arrays"]
    assert [each["name"] for each in arrays] == [f"released: {n}" for n in held]
    assert stored == StoredModel(arrays=stored.arrays)
    assert len(stored.arrays) == len(held)
    assert {each.name for each in fields(model.content)} == {"released", "ready"}
    assert model.content.ready is None


def test_arrays_have_types_that_no_count_decides(tmp_path):
    types = []
    for rows in (20, 3000):
        save_model(once_model(contract_table(rows)), path := tmp_path / f"{rows}.pegs")
        arrays = taken_apart(path.read_bytes()).header["arrays"]
        types.append({each["name"]: each["dtype"] for each in arrays})
    assert types[0] == types[1]


# Anywhere, without anything else


@pytest.mark.parametrize("budget", [{}, {"delta": 1e-9}], ids=str)
def test_a_saved_model_draws_what_the_model_in_memory_draws(tmp_path, budget):
    model = once_model(schema=contract_schema(), **budget)
    save_model(model, tmp_path / "m.pegs")
    loaded = load_model(tmp_path / "m.pegs")
    for rows in (1, 500):
        assert np.array_equal(drawn(loaded, rows), drawn(model, rows))
    assert loaded.plan.events == model.plan.events
    assert not model.schema.breaks_a_rule(drawn(loaded, 500)).any()
    assert set(drawn(loaded, 40, where=(("a", "y"),))[:, 0]) == {1}


def test_a_moved_file_needs_no_other(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    save_model(once_model(), home / "m.pegs")
    assert [path.name for path in home.iterdir()] == ["m.pegs"]
    shutil.move(home / "m.pegs", elsewhere / "other.pegs")
    assert len(drawn(load_model(elsewhere / "other.pegs"), 1234)) == 1234


def test_the_ledger_goes_with_the_file(tmp_path):
    save_model(once_model(), tmp_path / "m.pegs")
    loaded = load_model(tmp_path / "m.pegs")
    ledger = Session(loaded, loaded.plan, RandomStream()).ledger
    assert ledger.guarantee.kind == "pure"
    assert 10 * (1 - 1e-9) < ledger.epsilon <= 10
    # Drawing with a seed is no look at the data: it takes nothing away.
    assert Session(loaded, loaded.plan, RandomStream(1)).ledger == ledger


@pytest.mark.usefixtures("without_residuals")
def test_every_choice_and_measurement_is_an_event():
    model = once_model()
    events = model.plan.events
    purposes = [e.purpose for e in events if isinstance(e, (NoisyCounts, Selection))]
    features = len(model.schema.features)
    released = model.content.released
    assert purposes[: features + 1] == ["total"] + ["marginals"] * features
    assert purposes.count("heads") == features - 1
    assert purposes.count("block") == len(released.blocks)
    assert purposes.count("second round") == purposes.count("table") == len(released.extra)
    assert isinstance(events[-1], Unspent)
    assert len(events) == len(purposes) + 1


# Who may have it


def test_a_covered_file_says_shareable_and_anybody_may_read_it(tmp_path):
    save_model(once_model(), path := tmp_path / "m.pegs")
    assert path.read_bytes().startswith(SHAREABLE.encode() + b"\n")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("why", ["seeded", "unreviewed"])
def test_a_file_that_nothing_covers_says_so(tmp_path, why):
    schema = replace(contract_schema(), reviewed=why == "seeded")
    model = once_model(schema=schema, accept=True)
    if why == "seeded":
        model = replace(model, ledger=seeded_ledger(model.ledger))
    save_model(model, path := tmp_path / "m.pegs")
    assert path.read_bytes().startswith(UNCOVERED.encode() + b"\n")
    assert path.stat().st_mode & 0o777 == 0o600
    loaded = load_model(path)
    assert Session(loaded, loaded.plan, RandomStream()).ledger.guarantee.kind == "none"


# What is damaged


def changed(name, how):
    def change(held):
        held[name] = how(held[name].copy())

    return change


def at(place, value):
    def change(array):
        array[place] = value
        return array

    return change


DAMAGES = {
    "no total": lambda held: held.pop("total"),
    "two totals": changed("total", lambda a: np.repeat(a, 2)),
    "a count missing": changed("counts", lambda a: a[:-1]),
    "a count too many": changed("counts", lambda a: np.append(a, 0)),
    "no deviation": changed("deviations", at(1, 0.0)),
    "no number": changed("deviations", at(0, np.nan)),
    "a level left out": changed("levels", at(0, 7)),
    "a level below zero": changed("levels", at(0, -1)),
    "a feature that is none": changed("features", at(-1, 9)),
    "a feature twice": changed("features", lambda a: np.where(a == a[-1], a[-2], a)),
    "an unknown kind": changed("kinds", at(-1, 3)),
    "an order that is none": changed("order", at(0, 0)),
    "heads drawn later": changed("order", lambda a: a[::-1]),
    "flags missing": changed("ordered", lambda a: a[:-1]),
}


def tables_of(model):
    return tuple(
        (each.features, each.counts.tolist(), each.deviation)
        for each in (*model.one_ways, *model.blocks, *model.extra)
    )


def test_arrays_give_back_what_was_released():
    model = once_model()
    released = model.content.released
    found = loaded_released(stored_released(released), model.schema)
    assert tables_of(found) == tables_of(released)
    assert found.order == released.order
    assert found.total == released.total
    with pytest.raises(ModelError, match="does not hold what its method needs"):
        loaded_released(StoredModel(), model.schema)


@pytest.mark.usefixtures("without_residuals")
@pytest.mark.parametrize("damage", DAMAGES)
def test_released_blocks_that_do_not_fit_are_refused(damage):
    model = once_model()
    assert model.content.released.blocks
    held = stored_released(model.content.released).under("released: ")
    DAMAGES[damage](held)
    damaged = StoredModel(arrays={f"released: {n}": a for n, a in held.items()})
    with pytest.raises(ModelError, match="do not fit"):
        loaded_released(damaged, model.schema)


def test_a_model_without_its_blocks_is_refused(tmp_path, monkeypatch):
    model = once_model()
    with monkeypatch.context() as patched:
        empty = StoredModel()
        patched.setattr("pegsynth.methods.released._pegs_once.stored_released", lambda _: empty)
        save_model(model, tmp_path / "m.pegs")
    with pytest.raises(ModelError, match="does not hold what its method needs"):
        load_model(tmp_path / "m.pegs")
