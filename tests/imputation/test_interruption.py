"""Ctrl-C ends a fit at once, in a script and on the command line; a stopped kernel returns."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from imputation_tables import dependent_codes, fit_forest, mixed_schema, words

from pegsynth.errors import DataError
from pegsynth.methods.baselines import trees
from pegsynth.methods.baselines.glm import make_design, row_columns
from pegsynth.methods.baselines.glm_fit import Problem
from pegsynth.runtime import Abandoned, Stop, run_each

MOST_SECONDS = 2.0
"""From the signal to the exception, on a machine that has other things to do."""

TO_THE_END = 10.0
"""To the end of the process: taking an interpreter down is not ours, waiting for a fit would be."""

SCRIPT = """
import sys
import numpy as np, polars as pl
import pegsynth
from pegsynth.schema import Feature, Schema

words = np.random.default_rng(1)
rows, names = {rows}, [f"f{{i}}" for i in range(8)]
levels = [str(i) for i in range(30)]
base = words.integers(0, 30, rows)
codes = {{n: (base + words.integers(0, 12, rows)) % 30 for n in names}}
data = pl.DataFrame({{n: pl.Series(c).cast(pl.String) for n, c in codes.items()}})
schema = Schema(tuple(Feature(n, categories=levels) for n in names), reviewed=True)

def tell(stage, done, total):
    if stage == "models":
        print("models", done, flush=True)

try:
    pegsynth.synthesize(data, schema, method={method!r}, rows=10, progress=tell, **{options!r})
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


@pytest.mark.parametrize(
    ("method", "rows", "options"),
    [("mi", 300_000, {}), ("pmi", 300_000, {"epsilon": 1.0}), ("forest", 150_000, {})],
)
def test_ctrl_c_ends_a_fit_and_the_process(method, rows, options):
    script = SCRIPT.format(rows=rows, method=method, options=options)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "models 0\n"
        time.sleep(1.0)
        assert process.poll() is None, process.stderr.read()
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        # A model may have been finished just before.
        lines = iter(process.stdout.readline, "")
        told = next((line for line in lines if not line.startswith("models")), "")
        seconds = time.monotonic() - sent
        out, error = process.communicate(timeout=TO_THE_END)
    assert (told, out) == ("interrupted\n", "")
    assert error.rstrip().endswith("KeyboardInterrupt")
    # Python forgets that it was a signal if another thread compiles a text meanwhile.
    assert process.returncode in (-signal.SIGINT, 1)
    assert seconds < MOST_SECONDS


def test_work_is_done_by_several_threads_and_given_back_as_it_is_finished():
    together = threading.Barrier(2, timeout=10)

    def work(item, stop):
        together.wait()
        return item * 2

    assert dict(run_each([1, 2, 3, 4], work, threads=2)) == {1: 2, 2: 4, 3: 6, 4: 8}
    assert list(run_each([], work, threads=2)) == []


def test_an_error_of_one_part_is_raised_and_no_further_part_is_begun():
    begun = []

    def work(item, stop):
        begun.append(item)
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        list(run_each(list(range(50)), work, threads=1))
    assert begun == [0]


def test_whoever_leaves_waits_for_nobody():
    under_way, ended = threading.Event(), threading.Event()

    def work(item, stop):
        if item == 0:
            return 0
        under_way.set()
        while not stop.asked:
            time.sleep(0.005)
        ended.set()
        stop.check()
        return 1

    parts = run_each([0, 1, 2], work, threads=2)
    assert next(parts) == (0, 0)
    assert under_way.wait(10)
    parts.close()
    assert ended.wait(10)


def test_a_descent_that_is_given_up_ends_at_its_next_step():
    """Without the flag it would go on, and change what it was given."""
    schema = mixed_schema()
    columns = row_columns(dependent_codes(schema, 2_000))
    design = make_design(columns.T, schema, weights=np.ones(2_000))
    stop = Stop()
    problem = Problem.make(
        columns,
        design.layout(0),
        columns[0].astype(np.int64),
        np.ones(2_000),
        schema.category_counts[0],
        stop,
    )
    held = problem.start()
    stop.ask()
    with pytest.raises(Abandoned):
        problem.descend(held, 0.0, 0.5, 0.0)
    assert np.array_equal(held, problem.start())


def test_what_was_given_up_says_so():
    stop = Stop()
    stop.check()
    stop.ask()
    with pytest.raises(Abandoned):
        stop.check()


def test_a_forest_grown_tree_by_tree_is_the_forest_grown_at_once():
    """A warm start gives each tree the seed that it would have had among all."""
    from sklearn.ensemble import RandomForestClassifier

    chance = np.random.default_rng(3)
    rows, outcome = chance.integers(0, 4, (400, 5)).astype(np.float32), chance.integers(0, 3, 400)
    weights = chance.random(400)
    at_once = RandomForestClassifier(6, random_state=5).fit(rows, outcome, sample_weight=weights)
    by_tree = RandomForestClassifier(random_state=5, warm_start=True)
    for count in range(1, 7):
        by_tree.set_params(n_estimators=count).fit(rows, outcome, sample_weight=weights)
    for one, other in zip(at_once.estimators_, by_tree.estimators_, strict=True):
        assert np.array_equal(one.tree_.threshold, other.tree_.threshold)
        assert np.array_equal(one.tree_.value, other.tree_.value)


def test_a_forest_that_is_given_up_grows_no_further_tree(monkeypatch):
    grown, clock = [], [0.0]
    monkeypatch.setattr(trees.time, "monotonic", lambda: clock[0])
    from sklearn.ensemble import RandomForestClassifier

    fit = RandomForestClassifier.fit

    def counted(self, *given, **named):
        grown.append(self.n_estimators)
        # Trees that take long are grown one at a time.
        clock[0] += 1.0
        if len(grown) == 3:
            monkeypatch.setattr(Stop, "asked", property(lambda self: True))
        return fit(self, *given, **named)

    monkeypatch.setattr(RandomForestClassifier, "fit", counted)
    schema = mixed_schema()
    with pytest.raises(Abandoned):
        fit_forest(dependent_codes(schema, 300), schema, words=words(), trees=9)
    assert grown == [1, 2, 3]
