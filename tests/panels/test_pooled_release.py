"""Releases of panels with many rows for a unit: transitions pooled over positions (R24)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from test_panel_release import check_people

import pegsynth
from command import check_refused, done, pegs
from pegsynth.datasets import panel, panel_schema
from pegsynth.errors import ModelError, ParameterError, SchemaError
from pegsynth.methods.released import _pooled
from pegsynth.privacy import NoisyCounts, PooledRows, Selection, UnitBound, Unspent
from pegsynth.schema import Schema
from pegsynth.schema.panel import FOLDED, POOLED, Panel
from pegsynth.schema.wide_schema import long_schema, wide_schema

PEOPLE, MOST = 400, 13
ONCE = {"method": "pegs-once", "epsilon": 8.0, "delta": 1e-9, "progress": False}


def stated(transitions, most=MOST):
    schema = panel_schema(most)
    return replace(schema, panel=replace(schema.panel, transitions=transitions))


@pytest.fixture(scope="module")
def table():
    return panel(PEOPLE, seed=1, most=MOST)


@pytest.fixture(scope="module", autouse=True)
def _small_pools():
    """Few rows to draw from: quick, and every one as it should be."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(_pooled, "POOL_ROWS", 1 << 13)
        yield


@pytest.fixture(scope="module")
def model(table, _small_pools):
    return pegsynth.fit(table, panel_schema(MOST), rows=300, **ONCE)


def test_the_way_follows_from_public_figures():
    assert not Panel("u", "t", 12).pooled
    assert Panel("u", "t", 13).pooled
    assert Panel("u", "t", 3, transitions=POOLED).pooled
    assert not Panel("u", "t", 40, transitions=FOLDED).pooled
    assert not Panel("u", "t", 20, ("z",), tables=("a", "b")).pooled
    # Codebooks of models that were written before there was a choice are folded.
    assert not Panel("u", "t", 20, wide=True).pooled
    for schema in (panel_schema(4), panel_schema(MOST), stated(FOLDED), stated(POOLED, 3)):
        assert long_schema(wide_schema(schema)).panel == schema.panel


def test_a_model_gives_whole_people(table, model, tmp_path):
    frame = model.sample(300)
    assert frame.schema == table.schema
    check_people(frame, 300, most=MOST)
    assert frame.group_by("patient").len()["len"].n_unique() > 4
    model.save(tmp_path / "m.pegs")
    again = pegsynth.load(tmp_path / "m.pegs")
    check_people(again.sample(150), 150, most=MOST)
    assert again.schema.panel.pooled


def test_every_wide_row_obeys_the_rules(model):
    wide = model.schema
    codes = np.concatenate(list(model.session.draw(2000)[0]))
    assert wide.panel.pooled
    assert len(codes) == 2000
    assert not wide.breaks_a_rule(codes).any()


def test_the_ledger_prices_transitions_for_all_rows_of_a_unit(model):
    ledger = model.ledger
    pooled = [event for event in ledger.events if isinstance(event, PooledRows)]
    single = [event for event in ledger.events if isinstance(event, NoisyCounts | Selection)]
    assert pooled
    assert single
    assert {event.rows_per_unit for event in pooled} == {MOST - 1}
    (bound,) = [event for event in ledger.events if isinstance(event, UnitBound)]
    assert bound.rows_per_unit == ledger.guarantee.rows_per_unit == 1
    assert ledger.guarantee.epsilon == pytest.approx(8.0)
    # Three quarters of the budget went to transitions, what was left unspent included.
    rho = sum(float(event.price("zcdp")) for event in pooled)
    left = [event for event in ledger.events if isinstance(event, Unspent)]
    unspent = sum(float(event.price("zcdp")) for event in left)
    assert rho <= 0.75 * ledger.guarantee.rho * (1 + 1e-9) <= rho + unspent + 1e-9
    (assumed,) = [each for each in ledger.assumptions if each.code == "panel"]
    assert assumed.parameters["transitions"] == "pooled"
    assert "at most 12 of each unit" in ledger.explain()
    assert pegsynth.Ledger.from_json(ledger.to_json()) == ledger


@pytest.mark.parametrize("route", ["pure", "zcdp"])
@pytest.mark.parametrize(
    "step",
    [
        NoisyCounts.laplace(3, cells=1, purpose="table"),
        NoisyCounts.gaussian(3, cells=1, purpose="table"),
        Selection.of(0.25, count=1, purpose="heads"),
    ],
)
def test_pooled_rows_are_priced_as_rows_of_a_unit(route, step):
    pooled = PooledRows(rows_per_unit=4, step=step)
    assert pooled.price(route) == step.price(route, rows_per_unit=4)
    assert pooled.price(route, rows_per_unit=2) == step.price(route, rows_per_unit=8)


def test_tables_have_noise_of_their_own(table):
    release = pegsynth.synthesize(table, panel_schema(MOST), rows=80, datasets=2, **ONCE)
    first, second = release.frames
    assert not first.equals(second)
    for frame in (first, second):
        check_people(frame, 80, most=MOST)


def test_a_seed_gives_the_same_people_and_no_promise(table):
    told = {**ONCE, "rows": 60, "seed": 4}
    one, two = (pegsynth.synthesize(table, panel_schema(MOST), **told) for _ in range(2))
    assert one.frames[0].equals(two.frames[0])
    assert one.ledger.guarantee.kind == "none"


def test_other_methods_fold_every_position(table):
    told = {"method": "bootstrap", "progress": False}
    release = pegsynth.synthesize(table, panel_schema(MOST), rows=40, **told)
    check_people(release.frames[0], 40, most=MOST)
    assert release.schema.panel.transitions == FOLDED
    with pytest.raises(ParameterError, match="bootstrap folds every position"):
        pegsynth.synthesize(table, stated(POOLED), rows=40, **told)


def test_people_with_one_row_have_no_transition(table):
    alone = table.unique("patient", keep="first")
    frame = pegsynth.synthesize(alone, panel_schema(MOST), rows=100, **ONCE).frames[0]
    check_people(frame, 100, most=MOST)
    assert frame.height < 150


def test_measured_edges_and_categories_are_those_of_first_rows(table):
    schema = panel_schema(MOST)
    kinds = {
        "admitted": {"kind": "date", "edges": "private"},
        "ward": {"categories": "private"},
    }
    columns = tuple(
        type(column)(column.name, **kinds[column.name]) if column.name in kinds else column
        for column in schema.columns
    )
    private = Schema(columns, panel=replace(schema.panel, gaps=()), reviewed=True)
    told = {**ONCE, "epsilon": 30.0}
    model = pegsynth.fit(table, private, rows=100, **told)
    wards = {wide.categories for wide in model.schema.features if wide.name.startswith("ward_")}
    assert len(wards) == 1
    frame = model.sample(100)
    assert frame.columns == table.columns
    assert frame.group_by("patient").len()["len"].max() <= MOST
    assert model.ledger.guarantee.epsilon <= 30.0


@pytest.mark.parametrize(
    ("panel_keys", "told", "message"),
    [
        ({}, {"replicates": 3}, "replicates cannot be combined with transitions that are pooled"),
        ({"gaps": "private"}, {}, "list gaps, leave them out"),
        ({}, {"where": {"ward_3": "heart"}}, "where ward_3.* can be given"),
    ],
)
def test_what_pooled_transitions_cannot_do_is_refused(table, panel_keys, told, message):
    schema = panel_schema(MOST)
    schema = replace(schema, panel=replace(schema.panel, **panel_keys))
    with pytest.raises(ParameterError, match=message):
        pegsynth.synthesize(table, schema, rows=10, **ONCE, **told)


def test_what_is_given_is_kept(model, table):
    told = {**ONCE, "where": {"sex": "female", "ward_1": "heart", "patient_rows": "5"}}
    frame = pegsynth.synthesize(table, panel_schema(MOST), rows=30, **told).frames[0]
    assert set(frame["sex"]) == {"female"}
    assert frame.height == 150
    assert set(frame.group_by("patient").first()["ward"]) == {"heart"}


def test_tables_of_counts_are_refused(model):
    with pytest.raises(ParameterError, match="pools transitions"):
        pegsynth.published_counts(model, ["sex", "born"])
    with pytest.raises(ParameterError, match="pools transitions"):
        pegsynth.supported(model, "C(ward) ~ C(sex)")


def test_a_schema_says_what_it_wants(tmp_path):
    for transitions in (POOLED, FOLDED):
        stated(transitions).save(tmp_path / "s.toml")
        assert Schema.load(tmp_path / "s.toml").panel.transitions == transitions
    with pytest.raises(SchemaError, match="transitions must be"):
        Panel("u", "t", 3, transitions="both")
    with pytest.raises(SchemaError, match="two rows or more"):
        Panel("u", "t", 1, transitions=POOLED)


def test_a_damaged_file_is_refused(model, tmp_path):
    from pegsynth.methods import get
    from pegsynth.methods.stored_model import StoredModel

    method, inner = get("pegs-once"), model.session.model
    stored = method.store(inner.content)
    kept = {name: array for name, array in stored.arrays.items() if "transitions" not in name}
    with pytest.raises(ModelError):
        method.load(StoredModel(arrays=kept), inner.schema, inner.plan)


@pytest.mark.slow(seconds=10)
def test_the_commands_know_it(table, tmp_path):
    table.write_csv(tmp_path / "stays.csv")
    panel_schema(MOST).save(tmp_path / "schema.toml")
    shown = done("plan", "--schema", tmp_path / "schema.toml", "--epsilon", 1, "--rows", 1000)
    assert "in one table for all positions, in which a unit has up to 12 rows" in shown.out
    common = ("--schema", tmp_path / "schema.toml", "--method", "pegs-once", "--epsilon", 4)
    done(
        *("release", tmp_path / "stays.csv", *common, "--delta", 1e-9, "--rows", 120),
        *("-o", tmp_path / "out"),
    )
    public = tmp_path / "out" / "public"
    check_people(pl.read_csv(public / "synthetic-1.csv"), 120, most=MOST)
    assert Schema.load(public / "schema.toml").panel == panel_schema(MOST).panel
    privacy = (public / "PRIVACY.md").read_text()
    assert "(at most 13; the limit" in privacy
    assert "in which one patient has at most 12 rows" in privacy
    advice = (public / "HOW-TO-ANALYSE.md").read_text()
    assert "depend on each other" in advice
    # One table has no standard errors to cluster.
    assert "Cluster" not in advice
    assert "was measured for all positions together" in advice
    assert "the first 13 count, in their order" in advice
    quality = (public / "QUALITY.md").read_text()
    assert "ward (next)" in quality
    assert "ward_3" not in quality
    outcome = pegs(
        *("release", tmp_path / "stays.csv", *common, "--rows", 20, "--replicates", 5),
        *("-o", tmp_path / "no"),
    )
    check_refused(outcome, "--replicates cannot be combined with transitions that are pooled")
