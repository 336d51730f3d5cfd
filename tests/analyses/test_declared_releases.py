"""Releases that hold declared analyses: measured, stored, calibrated, replicated (R26, R28)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from declared_tables import ANALYSES, declaring, people, schema

from command import done, pegs
from pegsynth import fit, load, published_counts, replicated, supported
from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import encode
from pegsynth.errors import ModelError
from pegsynth.inference.procedures import quantiles
from pegsynth.methods.counting import StreamedTable
from pegsynth.methods.released._calibration import Calibration, _State, calibrated
from pegsynth.methods.released._declared import published_designs
from pegsynth.methods.released._stored import loaded_released, stored_released
from pegsynth.methods.released._sum_design import in_frames, sum_design, sums_of
from pegsynth.methods.released._terms import design_of
from pegsynth.privacy import Ledger, NoisySums
from pegsynth.progress import quiet
from pegsynth.random import RandomStream
from pegsynth.schema.declared import Analysis
from pegsynth.tables.table_input import open_table

EPSILON = 40.0


@cache
def model():
    """Return a model with little noise."""
    return fit(people(), declaring(), method="pegs-once", epsilon=EPSILON, delta=1e-9, seed=1)


def own_sums(design, frame):
    return sums_of([encode(frame.select(design.schema.names), in_frames(design.schema))], design)


def test_the_ledger_says_what_sums_were_measured_and_their_price():
    events = [e for e in model().plan.events if isinstance(e, NoisySums)]
    assert [event.features for event in events] == [("pay", "age", "area"), ("pay", "age", "job")]
    assert all(event.largest_square > event.largest_sum for event in events)
    assert Ledger(model().plan.events, delta=1e-9).guarantee.epsilon <= EPSILON


def test_measured_sums_are_those_of_the_table_up_to_their_noise():
    content, calibration = model().content.released, model().session.sampler.calibration
    for design, measured in zip(calibration.designs, content.sums, strict=True):
        away = (measured.sums - own_sums(design, people())) / measured.deviation
        assert np.abs(away).max() < 6


def test_a_table_read_in_batches_has_the_same_sums(tmp_path):
    people().write_csv(tmp_path / "people.csv")
    book = schema()
    design = sum_design(design_of(declaring().analyses[0], book), book, {"age": (20.0, 60.0)})
    with open_table(tmp_path / "people.csv") as reader:
        table = CodeTable(reader, book, RandomStream(1))
        sums = StreamedTable(table, 1, quiet).sums(design)
    assert sums.tolist() == own_sums(design, people()).tolist()


def test_weights_are_tilted_to_the_sums_and_to_nothing_else():
    design = sum_design(design_of(declaring().analyses[0], schema()), schema(), {})
    added = Calibration((design,)).added(people(500, seed=2))
    wanted = own_sums(design, people(500, seed=3)) / design.scale()
    noise = np.full(len(wanted), 1e-6)
    weights, _ = calibrated(np.ones(500), added, wanted, noise)
    reached = sum(weights[rows] @ each for rows, each in added.parts())
    assert reached == pytest.approx(wanted, abs=1e-3)
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(500)
    own = sum(np.ones(500)[rows] @ each for rows, each in added.parts())
    same, tilt = calibrated(np.ones(500), added, own, noise)
    assert np.allclose(same, 1.0)
    assert np.allclose(tilt, 0.0)


class Ones:
    """Every row adds 1 to the only sum."""

    size = 1

    def parts(self):
        yield slice(0, 4), np.ones((4, 1))


@pytest.mark.parametrize("tilt", [-5_000.0, 0.0, 5_000.0])
def test_a_tilt_that_noise_makes_huge_leaves_weights(tilt):
    """Under loud noise all exponents may be far below 0: nothing must be divided by 0."""
    state = _State.of(np.ones(4), Ones(), np.array([tilt]))
    assert state.weights.sum() > 0
    assert state.mean == pytest.approx([1.0])
    assert state.logarithm == pytest.approx(tilt)


def test_released_values_agree_with_the_sums(tmp_path):
    """A table without declared analyses does not: its values lie uniformly in their bins."""
    file = tmp_path / "m.pegs"
    model().save(file)
    loaded = load(file)
    frame = loaded.sample(4000)
    calibration = model().session.sampler.calibration
    design, measured = calibration.designs[0], model().content.released.sums[0]
    plain = fit(people(), schema(), method="pegs-once", epsilon=EPSILON, delta=1e-9, seed=1)
    scale = len(people()) / 4000 / measured.deviation
    away = np.abs(own_sums(design, frame) * scale - measured.sums / measured.deviation)
    others = np.abs(
        own_sums(design, plain.sample(4000)) * scale - measured.sums / measured.deviation
    )
    assert np.median(away) < np.median(others) / 3


def test_files_hold_what_columns_are_turned_by():
    released, book = model().content.released, model().schema
    again = loaded_released(stored_released(released), book)
    for design, one, other in zip(
        published_designs(book, again.sums), again.sums, released.sums, strict=True
    ):
        assert one.scored_at.tolist() == other.scored_at.tolist()
        assert design.scores.turned is not None
    *others, last = released.sums
    cut = replace(last, scored_at=last.scored_at[:-1])
    with pytest.raises(ModelError):
        loaded_released(stored_released(replace(released, sums=(*others, cut))), book)


def test_replicates_have_noise_of_their_own_on_the_sums():
    design = model().session.sampler.calibration.designs[0]
    published = model().content.released.sums[0]
    names = ("pegs_weight", "pegs_weight_1", "pegs_weight_2")

    def drawn_sums():
        weights = model().replicates(4, rows=1500)
        codes = encode(weights.select(design.schema.names), in_frames(design.schema))
        return [weights[name].to_numpy() @ design.products(codes) for name in names]

    drawn = np.array([drawn_sums() for _ in range(9)])
    # One table of 1,500 rows is off by about 4 % of the largest sum, their mean by a third of
    # that: 10 % is seven deviations.
    off = np.abs(drawn[:, 0].mean(axis=0) - published.sums)
    assert off.max() < 0.1 * np.abs(published.sums).max()
    assert not np.allclose(drawn[0, 1], drawn[0, 2])


def test_own_noise_tables_and_given_values_are_drawn():
    tables = model().sample(300, datasets=2).frames
    assert [table.height for table in tables] == [300, 300]
    given = model().sample(50, where={"area": "s"})
    assert given["area"].unique().to_list() == ["s"]


def test_declared_analyses_are_held():
    assert supported(model(), "pay ~ age + C(area)").status == "supported"
    assert "declared" in str(supported(model(), "I(pay > 30) ~ age + job"))
    assert "declared" not in str(supported(model(), "pay ~ job"))


CURVED = "pay ~ age*job + I(age^2) + rcs(age, 25, 40, 60)"


def test_interactions_and_curves_are_measured_stored_and_calibrated_to(tmp_path):
    """A release at hardly any noise has the interaction that was declared."""
    formula = "pay ~ log(age)*job"
    table = people(4000).with_columns(
        pay=(pl.col("pay") + (pl.col("job") == "a") * (pl.col("age") - 44)).clip(0, 119)
    )
    book = schema(analyses=(Analysis(formula, share=0.4), Analysis(CURVED, share=0.1)))
    asked = {"method": "pegs-once", "epsilon": 60.0, "delta": 1e-9, "seed": 1}
    made = fit(table, book, **asked)
    made.save(tmp_path / "m.pegs")
    loaded = load(tmp_path / "m.pegs")
    frame = loaded.replicates(10, rows=4000)
    found = replicated(formula, frame, schema=book)
    ones = {"pegs_weight": np.ones(4000), "pegs_weight_1": np.ones(4000) * 1.1}
    ones["pegs_weight_2"] = np.ones(4000)
    rows = table.with_columns(**{name: pl.Series(each) for name, each in ones.items()})
    true = replicated(formula, rows, schema=book)
    name = "log(age):job[a]"
    assert found.params[name] == pytest.approx(true.params[name], rel=0.25)
    assert abs(found.params[name] - true.params[name]) < 5 * found.bse[name]
    assert supported(made, "pay ~ job*log(age)").declared
    assert not supported(made, "pay ~ age*area").declared
    ledger = made.ledger
    told = replicated(formula, frame, ledger=ledger, schema=book).statuses
    assert told[name] == "supported"


def test_an_interaction_that_was_not_declared_is_not_supported():
    frame = model().replicates(4, rows=500)
    # The three features were declared together, and no published table has all of them.
    ledger = replace(model().ledger, events=tuple(without(model().ledger, {"pay", "age", "area"})))
    # Without the codebook nobody knows which terms were declared, but of which features they are.
    for book, main in ((None, "supported"), (declaring(), "supported by bins only")):
        found = replicated("pay ~ age*C(area)", frame, ledger=ledger, schema=book)
        assert found.statuses["age"] == main
        assert found.statuses["age:C(area)[s]"] == "not supported"
        assert "not supported" in found.summary()
        # Sums for a regression say nothing about quantiles of its features.
        medians = replicated(quantiles("pay", by="area"), frame, ledger=ledger, schema=book)
        assert not any("declared" in note for note in medians.combined.notes)
    other = replicated("pay ~ sqrt(age) + C(area)", frame, ledger=ledger, schema=declaring())
    assert not any("declared" in note for note in other.combined.notes)


def without(ledger, features):
    """Yield the events of a ledger but for tables of all these features."""
    for event in ledger.events:
        table = getattr(event, "features", ())
        if isinstance(event, NoisySums) or not features <= set(table):
            yield event


def test_counts_of_a_wanted_table_have_intervals_that_hold():
    table = published_counts(model(), ["area", "job"])
    true = people().group_by("area", "job").len()
    both = table.join(true, on=["area", "job"])
    assert both.height == 6
    assert (both["count"] - both["len"]).abs().max() < 6 * both["std_error"][0]
    assert both.filter((pl.col("low") <= pl.col("len")) & (pl.col("len") <= pl.col("high"))).height


def test_the_commands_print_and_publish_tables(tmp_path):
    people(400).write_csv(tmp_path / "d.csv")
    schema().save(tmp_path / "s.toml")
    (tmp_path / "a.toml").write_text(ANALYSES)
    told = ("--schema", tmp_path / "s.toml", "--analyses", tmp_path / "a.toml")
    told += ("--method", "pegs-once", "--epsilon", 20, "--delta", 1e-9)
    done("fit", tmp_path / "d.csv", *told, "-o", tmp_path / "m.pegs")
    shown = done("tables", tmp_path / "m.pegs", "--of", "area,job").out
    assert shown.startswith("area,job,count,std_error,low,high,shrunk")
    assert pegs("tables", tmp_path / "m.pegs", "--of", "zip").code == 2
    assert (
        "declared" in done("inspect", tmp_path / "m.pegs", "--analysis", "pay ~ age + C(area)").out
    )
    done(
        *("release", tmp_path / "d.csv", *told, "--rows", 100, "-o", tmp_path / "out"),
        "--public-only",
    )
    public = tmp_path / "out" / "public"
    assert (public / "table-1.csv").read_text().startswith("area,job,count")
    page = (public / "HOW-TO-ANALYSE.md").read_text()
    assert "## Tables of counts" in page
    assert "## Declared analyses" in page


def test_private_edges_give_the_bounds():
    """Bounds are those of the paid tree, and values are released inside measured shapes."""
    book = declaring()
    for name in ("age", "pay"):
        book = book.with_feature(name, edges="private")
    fitted = fit(
        people(), replace(book, reviewed=True), method="pegs-once", epsilon=EPSILON, delta=1e-9
    )
    low, high = fitted.content.released.sums[0].bounds[:2]
    assert 0 <= low < 25
    assert 35 < high < 120
    assert fitted.sample(200).height == 200
