"""The comparison with peers on paper: tables, plan, stored results, and the page."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from checks.bench.peers import bench as benching
from checks.bench.peers import environments, plan, report, run, tables
from checks.bench.peers.bench import widest
from checks.bench.peers.results import Key, Result, Store
from checks.bench.peers.tables import Table
from checks.bench.peers.tools import DELTA, EPSILONS, TOOLS

KEY = Key("tiny", "mst", 1.0, 0, "build")
CODES = np.random.default_rng(1).integers(0, 2, (20, 4)).astype(np.uint8)
TINY = Table("tiny", {"a": 3, "b": 2, "c": 4, "d": 2}, "d", CODES, CODES)


def test_results_survive_an_interruption(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    first = Result(KEY, "done", 600.0, "2026-01-01", 9, scores={"tvd1": 0.25}, fit=1.5)
    second = replace(first, key=replace(KEY, repeat=1))
    store.add(first)
    with store.path.open("a") as file:
        file.write(second.line()[:40])
    assert list(store.load().values()) == [first]
    store.add(second)
    store.add(replace(first, fit=2.5))
    found = store.load()
    assert [result.fit for result in found.values()] == [1.5, 2.5]
    assert found[KEY].scores == {"tvd1": 0.25}
    later = {**json.loads(first.line()), "added in another version": 1}
    assert Result.parse(json.dumps(later)) == first


def test_plan_takes_first_repeats_first():
    runs = [(tool.name, key) for tool, key in plan.planned(["aim-short", "mst"], [], None)]
    adult = [(name, key.epsilon) for name, key in runs[:6] if key.table == "adult"]
    assert adult == [(name, epsilon) for name in ("mst", "aim-short") for epsilon in EPSILONS]
    repeats = [key.repeat for _, key in runs]
    assert repeats == sorted(repeats)
    assert len({key for _, key in runs}) == len(runs)


def test_plan_of_a_named_pair_and_budget():
    (first, _), (second, _) = ((k, t) for t, k in plan.planned(["mst"], ["adult:5"], [10.0]))
    assert (first.table, first.tool, first.epsilon, first.repeat) == ("adult:5", "mst", 10.0, 0)
    assert second.repeat == 1
    assert [key.epsilon for _, key in plan.planned(["sdv"], ["adult"], [10.0])] == [None, None]
    assert len(list(plan.planned(["pegs-once"], ["adult"], [1.0]))) == 5


def test_tools_and_stages_are_complete():
    for tool in TOOLS.values():
        assert tool.program.exists()
        assert not tool.environment or tool.environment in environments.REQUIREMENTS
        assert tool.delta in (None, DELTA)
    for names, on in plan.STAGES:
        assert set(names) <= set(TOOLS)
        assert set(on) <= set(tables.TABLES) == set(report.TITLES)
    pins = [pin for pins in environments.REQUIREMENTS.values() for pin in pins]
    assert all("==" in pin for pin in pins)


def test_tables_that_are_not_there(tmp_path):
    with pytest.raises(tables.NoDataError, match=tables.FOLDER):
        tables.load("adult", None)
    with pytest.raises(tables.NoDataError, match="not in the folder"):
        tables.load("discharge-like:3", tmp_path)


def test_adult_is_split_as_stated(tmp_path):
    (tmp_path / "adult").mkdir()
    lines = "\n".join(f"{i % 7},{i % 2}" for i in range(50))
    (tmp_path / "adult/adult.csv").write_text(f"age,income>50K\n{lines}\n")
    (tmp_path / "adult/adult-domain.json").write_text('{"age": 7, "income>50K": 2}')
    found = tables.load("adult", tmp_path)
    order = np.random.default_rng(0).permutation(50)
    assert found.train[:, 0].tolist() == [i % 7 for i in order[:40]]
    assert found.test[:, 1].tolist() == [i % 2 for i in order[40:]]
    assert found.train.dtype == np.uint8


def test_narrow_tables_keep_the_target():
    narrow = replace(TINY, target="b").narrowed(3)
    assert narrow.name == "tiny:3"
    assert dict(narrow.domain) == {"a": 3, "c": 4, "b": 2}
    assert np.array_equal(narrow.train, TINY.train[:, [0, 2, 1]])


@pytest.mark.parametrize(("most", "wanted"), [(9, 9), (3, 3), (13, 13), (2, None)])
def test_widest_table_that_a_tool_manages(most, wanted):
    asked = []

    class Slow:
        def table(self, _name):
            return replace(TINY, domain=dict.fromkeys(map(str, range(14)), 2))

        def result(self, _tool, key):
            asked.append(int(key.table.partition(":")[2]))
            return Result(key, "done" if asked[-1] <= most else "over", 1.0, "", 1)

    assert widest(Slow(), TOOLS["aim"], Key("adult", "aim", 1.0, 0, "b")) == wanted
    assert len(asked) <= 4


def test_a_slow_tool_is_compared_on_a_narrower_table():
    ran = []

    class Slow:
        def table(self, _name):
            return Table("adult", dict.fromkeys(map(str, range(6)), 2), "0", None, None)

        def result(self, tool, key):
            ran.append((tool.name, key.table, key.epsilon))
            width = int(key.table.partition(":")[2] or 6)
            slow = tool.name == "aim" and width > 4
            return Result(key, "over" if slow else "done", 1.0, "", 1)

    benching.run_all(Slow(), ["aim"], ["adult"], [1.0])
    assert {name for name, place, _ in ran if place == "adult:4"} == set(benching.COMPARED)
    assert {epsilon for name, place, epsilon in ran if place == "adult:4"} == set(EPSILONS)


def made_up(tool, epsilon, repeat, *, build="b", purpose="quality", status="done", **fields):
    value = 0.0471 + 0.0002 * repeat
    figures = {
        "tvd1": 0.01,
        "tvd2": value,
        "tvd3": 0.1,
        "tvd3_drawn": 0.2,
        "auc": 0.8991,
        "logit": 0.125,
    }
    return Result(
        Key("adult", tool, epsilon, repeat, build, purpose),
        status,
        600.0,
        "2026-02-03",
        39_073,
        fit=120.0,
        sample=1.25,
        fit_cpu=100.0,
        sample_cpu=0.5,
        peak_bytes=200 << 20,
        scores=figures if status == "done" else {},
        versions={"dpmm": "0.1.9"},
        **fields,
    )


def test_page_shows_mean_and_spread_of_the_latest_build():
    page = report.markdown(
        [
            made_up("mst", 1.0, 0, build="old"),
            made_up("mst", 1.0, 0),
            made_up("mst", 1.0, 1),
            made_up("aim", 1.0, 0, status="over"),
            made_up("bootstrap", None, 0),
            made_up("mst", 0.1, 0, status="failed"),
        ]
    )
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| none | bootstrap | 1 | 120 (100) | 1.2 (0.50) | 200 "
        "| .0100 | .0471 | .1000 | .2000 | .899 | .125 |",
        "| 0.1 | MST, dpmm | 1 | failed |  | 200 |  |  |  |  |  |  |",
        "| 1 | MST, dpmm | 2 | 120 (100) | 1.2 (0.50) | 200 | .0100 ± .0000 | .0472 ± .0001 "
        "| .1000 ± .0000 | .2000 ± .0000 | .899 ± .000 | .125 ± .000 |",
        "| 1 | AIM (default), dpmm | 1 | over 600 |  | 200 |  |  |  |  |  |  |",
    ]
    assert "Runs from 2026-02-03 to 2026-02-03" in " ".join(page.split())
    assert "MST, dpmm (dpmm 0.1.9)" in page
    assert "Side by side" not in page


def test_page_leaves_out_scores_that_a_run_lacks():
    old = made_up("mst", 1.0, 0)
    old = replace(old, scores={"tvd1": 0.5, "auc": 0.75})
    page = report.markdown([old])
    assert "| 200 | .5000 |  |  |  | .750 |" in page


def test_page_of_times_side_by_side():
    ours = [
        replace(made_up("pegs-once", 1.0, n, purpose="timing"), fit=fit, sample=0.0)
        for n, fit in enumerate((2.0, 1.0, 1.5))
    ]
    page = report.markdown([*ours, made_up("mst", 1.0, 0, purpose="timing")])
    rows = [line for line in page.splitlines() if line.startswith("| Adult")]
    assert "| pegsynth pegs-once | 3 | 1.50 | 100.50 |" in rows[0]
    assert "| MST, dpmm | 1 | 121.25 | 100.50 | 200 | 81 x |" in rows[1]
    assert "## Adult" not in page


def test_narrow_tables_have_titles_of_their_own():
    narrow = made_up("mst", 1.0, 0)
    narrow = replace(narrow, key=replace(narrow.key, table="adult:8"))
    assert "## Adult, 7 columns and the target" in report.markdown([narrow])


def test_the_command(tmp_path, capsys):
    store = Store(tmp_path / "results.jsonl")
    store.add(made_up("mst", 1.0, 0))
    page = tmp_path / "page.md"
    run.main(["--report-only", "--output", str(tmp_path), "--report", str(page)])
    assert "| 1 | MST, dpmm | 1 |" in page.read_text(encoding="utf-8")
    kept = f"\n{report.OTHERS}\n\nOf another benchmark.\n"
    page.write_text(f"An old page.\n{kept}", encoding="utf-8")
    run.main(["--report-only", "--output", str(tmp_path), "--report", str(page)])
    written = page.read_text(encoding="utf-8")
    assert written.endswith(kept)
    assert "| 1 | MST, dpmm | 1 |" in written
    assert "An old page" not in written
    with pytest.raises(SystemExit):
        run.main(["--data", "no-such-table"])
    assert "no-such-table" in capsys.readouterr().err
