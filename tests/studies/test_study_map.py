"""Risk-utility maps: a map is a direct loop over methods, budgets and repeats."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pegsynth.codec.codec import decode, encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.errors import ModelError, ParameterError
from pegsynth.random import RandomStream
from studies.paper import risk_utility_map
from studies.paper.arms import Arm
from studies.paper.repeats import mean
from studies.paper.setting import setting_of
from studies.paper.work_cells import Cell
from studies.paper.workshop import Population, Workshop
from studies.paper.yardstick import Yardstick

SCHEMA = discharge_schema()
FRAME = discharge(400, 1)
UNIQUE = "uniqueness[age.yrs, sex, patzip]"


def test_a_map_is_a_direct_loop() -> None:
    found = risk_utility_map(
        FRAME,
        SCHEMA,
        methods=("pegs", "bootstrap"),
        budgets=(1.0, 20.0),
        risk=UNIQUE,
        utility="marginal_distance",
        rows=40,
        repeats=3,
        seed=5,
        threads=2,
    )
    codes = encode(FRAME, SCHEMA)
    nothing = codes[:0]
    frame = decode(codes, SCHEMA, how="labels")
    workshop = Workshop(
        {"main": Population(SCHEMA, frame, codes, nothing, nothing)}, model_rows=100
    )
    yardstick = Yardstick.of(setting_of(SCHEMA), codes)
    arms = {
        "pegs": Arm("pegs", "pegs", "row", pool="default", order="default"),
        "bootstrap": Arm("bootstrap", "bootstrap", "none", pool="default", order="default"),
    }
    places = [("pegs", 1.0), ("pegs", 20.0), ("bootstrap", None)]
    assert [(point.method, point.budget) for point in found.points] == places
    for point, (name, level) in zip(found.points, places, strict=True):
        figures = []
        for repeat in range(3):
            stream = RandomStream(f"study 5 {Cell(name, level, repeat).name}")
            drawn = workshop.draw(arms[name], level, 40, stream)
            figures.append(yardstick.measure(drawn.codes))
        assert point.risk == mean([f[UNIQUE] for f in figures])
        assert point.utility == mean([f["marginal_distance"] for f in figures])


def test_figures_of_ones_own_and_prices(tmp_path: Path) -> None:
    def first_feature(original: np.ndarray, synthetic: np.ndarray) -> float:
        return float(abs(original[:, 0].mean() - synthetic[:, 0].mean()))

    def drawn(**changes):
        return risk_utility_map(
            FRAME,
            SCHEMA,
            methods=("pegs", "marginal"),
            budgets=(2.0,),
            risk="epsilon_per_row",
            utility="first feature",
            measures={"first feature": first_feature},
            rows=30,
            repeats=2,
            checkpoint=tmp_path / "map.jsonl",
            **changes,
        )

    found = drawn()
    assert found.points[0].risk.value == pytest.approx(2.0, rel=1e-3)
    assert 0 < found.points[1].risk.value <= 2.0
    assert all(point.utility.value >= 0 for point in found.points)
    assert drawn(threads=2).points == found.points
    with pytest.raises(ModelError, match="differs in seed"):
        drawn(seed=2)
    assert found.plot().svg.count("<title>") == len(found.points)


def test_totals_pools_and_hold_outs() -> None:
    found = risk_utility_map(
        FRAME,
        SCHEMA,
        methods=("pegs-rs", "pegs-capped", "fresh"),
        budgets=(5.0,),
        budget="epsilon",
        delta=1e-9,
        risk="epsilon",
        rows=30,
        repeats=2,
        seed_pool=discharge(60, 8),
        holdout=discharge(50, 9),
    )
    assert [point.budget for point in found.points] == [5.0, 5.0, None]
    for point in found.points[:2]:
        assert point.risk.value == pytest.approx(5.0, rel=1e-3)
    assert not found.points[2].risk.known
    assert found.points[2].utility.known
    assert found.rows()[0]["method"] == "pegs-rs"


def test_a_budget_that_cannot_be_met_says_why() -> None:
    found = risk_utility_map(
        FRAME,
        SCHEMA,
        methods=("pegs",),
        budgets=(1e-12, 1.0),
        budget="epsilon",
        rows=30,
        repeats=2,
    )
    assert found.points[0].reason
    assert not found.points[0].utility.known
    assert found.points[1].utility.known


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"risk": "luck"}, r"no figure 'luck'; there are epsilon, "),
        ({"methods": ("pegs", "magic")}, "no method 'magic'"),
        ({"methods": ("fresh",)}, "hold-out"),
        ({"budget": "money"}, "a budget is one of"),
    ],
)
def test_bad_requests_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        risk_utility_map(FRAME, SCHEMA, rows=30, repeats=2, **changes)


def test_the_example_of_the_document_runs(capsys) -> None:
    page = Path(__file__).parents[2] / "studies" / "paper" / "README.md"
    (example,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(example, "studies/paper/README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "pegs",
        "pegs",
        "pegs-rs",
        "pegs-rs",
        "bootstrap",
    ]
