"""The comparison with peers: plan, runs in programs of their own, scores, results, page.

A fake peer stands for the real ones, which are installed and run by `make bench-peers`.
"""

import os
import sys
import textwrap
import time
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from checks.bench.peers import bench as benching
from checks.bench.peers import environments, execute, scores
from checks.bench.peers.bench import Bench
from checks.bench.peers.results import Key, Result, Store
from checks.bench.peers.tables import Table
from checks.bench.peers.tools import PROGRAMS, TOOLS, Tool
from pegsynth.evaluation.utility.distances import triples

DOMAIN = {"a": 3, "b": 2, "c": 4, "d": 2}
ROWS = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, n, ROWS) for n in DOMAIN.values()], axis=1)
    codes[:, 3] = (codes[:, 0] > 0) ^ (rng.random(ROWS) < 0.05)
    codes = codes.astype(np.uint8)
    return Table("tiny", DOMAIN, "d", codes, codes[::2])


@pytest.fixture
def setting(tmp_path):
    return execute.Setting(tmp_path / "out", tmp_path / "envs", cap=60)


def fake(folder, body, **fields):
    """Return a tool whose program notes every start and then does `body`."""
    text = f"""
    import os, pathlib, subprocess, sys, time
    with pathlib.Path({str(folder / "starts")!r}).open("a") as starts:
        starts.write(f"{{os.getpid()}}\\n")
    sys.path.insert(0, {str(PROGRAMS)!r})
    from exchange import serve
    """
    program = folder / "run_fake.py"
    program.write_text(textwrap.dedent(text) + textwrap.dedent(body))
    return Tool("mst", "fake", "peer", "", program, **fields)


def starts(folder):
    return (folder / "starts").read_text().split()


COPIES = """
def sample(job, model):
    assert job.epsilon == 1.0 and job.delta == 1e-9 and job.seed == 0
    return model[::-1][:job.rows]

serve(lambda job, codes: codes, sample, ("numpy",), lambda job: job.codes)
"""
KEY = Key("tiny", "mst", 1.0, 0, "build")


@pytest.fixture
def known_table(table, monkeypatch):
    monkeypatch.setattr(Bench, "table", lambda _self, _name: table)


def test_a_run_is_timed_scored_and_kept(tmp_path, table, setting):
    result = execute.execute(fake(tmp_path, COPIES), table, KEY, setting)
    assert result.status == "done"
    assert result.rows == ROWS
    assert result.scores["tvd1"] == result.scores["tvd2"] == result.scores["tvd3"] == 0
    assert 0 <= result.fit < result.wall
    assert result.cpu > 0
    assert result.peak_bytes > 1 << 20
    assert result.versions == {"numpy": np.__version__}
    kept = np.load(execute.rows_file(KEY, setting.output))["rows"]
    assert np.array_equal(kept, table.train[::-1])
    assert asdict(scores.score(table, kept)) == dict(result.scores)


def test_a_benchmark_goes_on_where_it_stopped(tmp_path, setting, known_table, capsys):
    tool, store = fake(tmp_path, COPIES), Store(tmp_path / "results.jsonl")
    first = Bench(store, setting).result(tool, KEY)
    again = Bench(store, setting).result(tool, KEY)
    assert first == again
    assert len(starts(tmp_path)) == 1
    assert "tiny mst eps 1 run 0: done" in capsys.readouterr().out


def test_rows_can_be_scored_again(tmp_path, setting, known_table, monkeypatch):
    tool, store = fake(tmp_path, COPIES), Store(tmp_path / "results.jsonl")
    Bench(store, setting).result(tool, KEY)
    better = scores.Scores(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    monkeypatch.setattr(benching, "score", lambda _table, _rows: better)
    Bench(store, setting).rescore()
    assert store.load()[KEY].scores == asdict(better)
    assert len(starts(tmp_path)) == 1


@pytest.mark.parametrize("clock", ["processor", "wall"])
def test_the_cap_ends_a_run_and_all_it_started(tmp_path, table, setting, clock):
    spins = """
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "left behind"])
    while True:
        pass
    """
    short = replace(setting, cap=1, clock=clock)
    result = execute.execute(fake(tmp_path, spins), table, KEY, short)
    assert result.status == "over"
    assert not result.scores
    # On the wall a busy machine may reach the cap before Python has started.
    for group in starts(tmp_path) if clock == "processor" else []:
        assert not _alive_in_group(int(group))


def _alive_in_group(group):
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


def test_time_asleep_is_not_processor_time(tmp_path, table, setting):
    naps = "time.sleep(1.5)\n" + COPIES
    result = execute.execute(fake(tmp_path, naps), table, KEY, replace(setting, cap=1.2))
    assert result.status == "done"
    assert result.wall > 1.5


def test_a_run_that_the_cap_ended_is_not_repeated(tmp_path, setting, known_table):
    store = Store(tmp_path / "results.jsonl")
    store.add(Result(KEY, "over", 600.0, "2026-01-01", ROWS))
    tool = fake(tmp_path, COPIES)
    assert Bench(store, setting).result(tool, replace(KEY, repeat=1)) is None
    assert not (tmp_path / "starts").exists()


def test_failures_are_results_and_can_be_tried_again(tmp_path, setting, known_table):
    store = Store(tmp_path / "results.jsonl")
    broken = fake(tmp_path, "raise SystemExit('no such luck')")
    assert Bench(store, setting).result(broken, KEY).status == "failed"
    (log,) = setting.output.glob("jobs/*/log.txt")
    assert "no such luck" in log.read_text()
    mended = fake(tmp_path, COPIES)
    assert Bench(store, setting).result(mended, KEY).status == "failed"
    assert Bench(store, setting, retry=["failed"]).result(mended, KEY).status == "done"
    assert Store(store.path).load()[KEY].status == "done"


@pytest.mark.parametrize("rows", ["model + 9", "model[:, :2]", "model[:0]"])
def test_rows_outside_the_domain_are_a_failure(tmp_path, table, setting, rows):
    body = COPIES.replace("model[::-1][:job.rows]", rows)
    assert execute.execute(fake(tmp_path, body), table, KEY, setting).status == "failed"


@pytest.mark.parametrize("name", ["bootstrap", "independent", "dp-independent"])
def test_baselines(name, table, setting):
    tool = TOOLS[name]
    (*_, epsilon) = tool.epsilons
    result = execute.execute(tool, table, replace(KEY, tool=name, epsilon=epsilon), setting)
    assert result.status == "done"
    # 400 rows differ from their own bootstrap by some percent.
    assert result.scores["tvd1"] < 0.15
    # d follows a in 19 rows of 20; independent columns say nothing of it, right or wrong.
    if name == "bootstrap":
        assert result.scores["auc"] > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pegs-capped", "pegs-capped-command"])
def test_ours(name, table, setting):
    key = replace(KEY, tool=name)
    result = execute.execute(TOOLS[name], table, key, setting)
    assert result.status == "done"
    assert result.fit > result.sample
    assert set(result.scores) == {"tvd1", "tvd2", "tvd3", "tvd3_drawn", "auc", "logit"}


def slow_distance(first, second, columns):
    shares = [{}, {}]
    for share, rows in zip(shares, (first, second), strict=True):
        for row in rows[:, columns].tolist():
            share[tuple(row)] = share.get(tuple(row), 0) + 1 / len(rows)
    cells = shares[0].keys() | shares[1].keys()
    return sum(abs(shares[0].get(cell, 0) - shares[1].get(cell, 0)) for cell in cells) / 2


def test_scores_against_a_slow_twin(table):
    other = np.random.default_rng(2).permuted(table.train, axis=0)[:300]
    found = scores.score(table, other)
    every = {n: list(combinations(range(4), n)) for n in (1, 2, 3)}
    wanted = {
        n: np.mean([slow_distance(table.train, other, list(part)) for part in parts])
        for n, parts in every.items()
    }
    assert [found.tvd1, found.tvd2, found.tvd3] == pytest.approx(list(wanted.values()))
    # Four columns have four triples: both rules take them all.
    assert triples(table.levels) == every[3]
    assert found.tvd3_drawn == pytest.approx(found.tvd3)
    broken = other.copy()
    broken[:, 1] = 0
    assert scores.score(table, broken).tvd1 > found.tvd1


def test_area_of_several_classes(table):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    three = replace(table, target="a")
    model = HistGradientBoostingClassifier(
        max_iter=scores.TREES, early_stopping=False, random_state=0
    )
    with threadpool_limits(limits=1):
        model.fit(table.train[:, 1:], table.train[:, 0])
        chances = model.predict_proba(table.test[:, 1:])
    wanted = roc_auc_score(table.test[:, 0], chances, multi_class="ovr", average="macro")
    assert scores.auc(three, table.train) == pytest.approx(wanted)


def test_area_without_anything_to_learn(table):
    constant = table.train.copy()
    constant[:, 3] = 1
    assert scores.auc(table, constant) == 0.5
    # A class that was never synthesized is never predicted.
    two_of_three = table.train[table.train[:, 0] != 2]
    assert 0.3 < scores.auc(replace(table, target="a"), two_of_three) < 1


def test_builds_differ_by_settings_and_pins(monkeypatch):
    before = {name: execute.build_of(tool) for name, tool in TOOLS.items()}
    assert before["aim"] != before["aim-short"]
    monkeypatch.setitem(environments.REQUIREMENTS, "dpmm", ("dpmm==0",))
    assert execute.build_of(TOOLS["mst"]) != before["mst"]
    assert execute.build_of(TOOLS["sdv"]) == before["sdv"]


def test_environments_are_built_once(tmp_path, monkeypatch):
    built = []

    def build(place, requirements):
        place.mkdir(parents=True, exist_ok=True)
        built.append(requirements)

    monkeypatch.setattr(environments, "_build", build)
    for _ in range(2):
        python = environments.python_of("sdv", tmp_path)
    assert python == tmp_path / "sdv" / "bin" / "python"
    assert built == [list(environments.REQUIREMENTS["sdv"])]
    monkeypatch.setitem(environments.REQUIREMENTS, "sdv", ("sdv==0",))
    environments.python_of("sdv", tmp_path)
    assert len(built) == 2
    assert environments.python_of("", tmp_path) == Path(sys.executable)


def test_what_does_not_install_is_passed_over(tmp_path, setting, known_table, monkeypatch, capsys):
    def refuse(*_):
        raise environments.InstallError("no such package")

    monkeypatch.setattr(environments, "_build", refuse)
    bench = Bench(Store(tmp_path / "results.jsonl"), setting)
    assert bench.result(TOOLS["mst"], KEY) is None
    assert bench.result(TOOLS["mst"], replace(KEY, epsilon=10.0)) is None
    assert capsys.readouterr().out.count("no such package") == 1


def test_times_are_measured_anew_and_compared(tmp_path, setting, known_table, monkeypatch, capsys):
    tool = fake(tmp_path, COPIES.replace("and job.seed == 0", ""))
    monkeypatch.setitem(TOOLS, "mst", tool)
    monkeypatch.setattr(benching, "TIMED", ())
    store = Store(tmp_path / "results.jsonl")
    for _ in range(2):
        benching.timed(Bench(store, setting), ["mst"], ["tiny"], [1.0])
    keys = list(store.load())
    assert [key.repeat for key in keys] == [0, 1]
    assert {key.purpose for key in keys} == {"timing"}
    assert "tiny eps 1 mst: fit + sample" in capsys.readouterr().out
