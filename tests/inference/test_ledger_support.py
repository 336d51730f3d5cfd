"""What published tables hold of an analysis, as the ledger of a release tells it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import ParameterError
from pegsynth.inference import combine
from pegsynth.inference.ledger_support import NOT_SUPPORTED, support_note
from pegsynth.privacy import Ledger, NoisyCounts, NoisySums
from pegsynth.privacy.events import Unspent


def table(*features, levels):
    cells = int(np.prod(levels))
    purpose = "marginals" if len(features) == 1 else "table"
    return NoisyCounts.gaussian(
        3.0, cells=1, purpose=purpose, features=features, levels=levels, table_cells=cells
    )


def ledger(*events):
    ones = [table(name, levels=(4,)) for name in ("age", "sev", "los", "a.ge")]
    return Ledger((*ones, *events, Unspent.of(Fraction(1, 10), route="zcdp")), delta=1e-9)


PAIRS = (
    table("age", "sev", levels=(4, 4)),
    table("los", "sev", levels=(4, 4)),
    table("los", "age", levels=(4, 4)),
)
EDGES = NoisyCounts.gaussian(3.0, cells=1, purpose="edges", features=("los",), levels=(9,))
SUMS = NoisySums.gaussian(5.0, largest_sum=4, largest_square=4, sums=3, features=("los", "age"))


@pytest.mark.parametrize(
    ("events", "analysis", "said"),
    [
        (PAIRS, "los ~ age + sev", "supported: published tables have every pair"),
        (PAIRS, "los ~ C(age)", "supported: one"),
        (PAIRS, "los", "supported: one"),
        (PAIRS[:2], "los ~ age + sev", f"{NOT_SUPPORTED}: no published table holds age x los"),
        ((), "los ~ age", NOT_SUPPORTED),
        ((), "los ~ a.ge", f"{NOT_SUPPORTED}: no published table holds a.ge x los;"),
        ((SUMS,), "los ~ age", "supported: the analysis was declared"),
        ((SUMS,), "los ~ age + sev", NOT_SUPPORTED),
        ((*PAIRS, EDGES), "los ~ age", "supported by bins only: published tables have bins of los"),
        ((*PAIRS, EDGES), "los", "supported: one"),
        ((*PAIRS[:2], EDGES), "los ~ age", NOT_SUPPORTED),
        ((table("age", "los", levels=(2, 4)),), "los ~ age", "merged: rare categories of age are"),
    ],
)
def test_the_ledger_tells_what_is_held(events, analysis, said):
    assert support_note(ledger(*events), analysis).startswith(said)


def test_an_analysis_of_nothing_is_refused_and_other_releases_say_nothing():
    with pytest.raises(ParameterError, match="names no feature"):
        support_note(ledger(), "pay ~ job")
    assert support_note(Ledger(), "pay ~ job") == ""
    with pytest.raises(ParameterError, match="read off the ledger"):
        combine([1.0, 2.0], rule="own-noise", analysis="los ~ age")


def test_no_interval_of_replicates_is_printed_without_a_word_on_support():
    found = combine([1.0, 2.0, 3.0], rule="replicate-weights", main=2.0)
    assert any(NOT_SUPPORTED in note for note in found.notes)
    frame = pl.DataFrame(
        {"pegs_weight": [1e6, 2e6], "pegs_weight_1": [1e6, 1.5e6], "pegs_weight_2": [2e6, 1e6]}
    )

    def mean(_, weights):
        return {"mean": float(weights.sum())}

    without = pegsynth.replicated(mean, frame)
    assert NOT_SUPPORTED in str(without)
    assert without.to_frame()["status"].to_list() == ["not known: state the ledger"]
    assert "not known: state the analysis" in str(
        pegsynth.replicated(mean, frame, ledger=ledger(*PAIRS))
    )
    told = {"ledger": ledger(), "analysis": "los ~ age"}
    assert f"{NOT_SUPPORTED}: no published table" in str(pegsynth.replicated(mean, frame, **told))
    held = pegsynth.replicated(mean, frame, ledger=ledger(*PAIRS), analysis="los ~ age")
    assert NOT_SUPPORTED not in str(held)
    assert held.statuses == {"mean": "supported"}
    assert held.t_test("mean").statuses == {"mean": "supported"}


def test_the_command_says_it(tmp_path):
    (tmp_path / "e.csv").write_text("term,estimate,variance\nage,1,1\nage,2,1\nage,3,1\n")
    (tmp_path / "privacy.json").write_text(ledger().to_json())
    asked = ("combine", tmp_path / "e.csv", "--rows", 100, "--rows-in", 100)
    asked += ("--ledger", tmp_path / "privacy.json")
    assert NOT_SUPPORTED in done(*asked, "--analysis", "los ~ age").out
    check_refused(pegs(*asked, "--analysis", "pay"), "names no feature")
