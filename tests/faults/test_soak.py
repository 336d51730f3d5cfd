"""The machinery of the long run: steady notes pass, every kind of unsteadiness is caught."""

import random
from dataclasses import replace

import pytest

from checks.faults.soak import soak
from checks.faults.steadiness import ALPHA, Note, judge, slope, told
from significance import ALPHA as FALSE_ALARMS

MEBIBYTE = 1 << 20


def notes(count=200, *, seed=1, **drifts):
    """Return notes of an hour; `drifts` change a figure by the share of the run that has passed."""
    source = random.Random(seed)
    made = []
    for number in range(count):
        share = number / count
        steady = Note(
            18.0 * number + source.uniform(-1, 1),
            (seconds := source.gauss(17.0, 0.3)),
            seconds - 1,
            0.5,
            0.45,
            400 * MEBIBYTE + source.randrange(8 * MEBIBYTE),
            12 + source.randrange(2),
            3,
            source.gauss(0.1, 0.01),
            source.gauss(0.7, 0.02),
        )
        changed = {name: change(getattr(steady, name), share) for name, change in drifts.items()}
        made.append(replace(steady, **changed))
    return made


def unmet(*runs):
    return [verdict.what for verdict in judge(runs) if not verdict.met]


def test_the_named_rate_is_that_of_all_tests():
    assert ALPHA == FALSE_ALARMS


def test_a_steady_run_passes():
    runs = notes(seed=1), notes(seed=2)
    assert unmet(*runs) == []
    assert "| yes |" in told(runs, judge(runs))
    assert "NO" not in told(runs, judge(runs))


UNSTEADY = {
    "memory": ("resident", lambda value, share: int(value + 80 * MEBIBYTE * share)),
    "open files": ("handles", lambda value, share: int(value + 20 * share)),
    "threads": ("threads", lambda value, share: int(value + 20 * share)),
    "distance of pairs": ("distance", lambda value, share: value + 0.04 * share),
    "predictive power": ("power", lambda value, share: value - 0.08 * share),
}


@pytest.mark.parametrize("what", UNSTEADY)
def test_what_drifts_is_caught(what):
    name, change = UNSTEADY[what]
    assert unmet(notes(seed=1), notes(seed=2, **{name: change})) == [f"process 2: {what}"]


def test_a_run_that_slows_down_is_caught():
    slower = {
        name: lambda value, share: value * (1 + 0.1 * share) for name in ("seconds", "processor")
    }
    assert unmet(notes(**slower), notes(**slower)) == [
        "all: time of a cycle",
        "all: processor time of a cycle",
    ]
    # A machine that slows down is another matter.
    fixed = {f"fixed_{name}": change for name, change in slower.items()}
    assert unmet(notes(**slower, **fixed), notes(**slower, **fixed)) == []


def test_too_few_cycles_are_not_judged():
    with pytest.raises(ValueError, match="only 0 cycles"):
        judge([[], notes()])
    with pytest.raises(ValueError, match="only 4 cycles"):
        judge([notes(5), notes()])


def test_a_slope_by_hand():
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == 2
    # One wild value moves a mean, not this.
    assert slope([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 500]) == 1


@pytest.mark.slow(seconds=35)
def test_a_leaking_twin_is_caught(tmp_path):
    """Processes, notes and verdicts as in the long run, with cycles that do little."""
    runs = soak(tmp_path / "idle", 4.0, kind="idle")
    steady = [what for what in unmet(*runs) if "time of a cycle" not in what]
    assert steady == [], told(runs, judge(runs))
    (leaking,) = soak(tmp_path / "leaking", 4.0, processes=1, kind="leaking")
    assert set(unmet(leaking)) >= {f"process 1: {what}" for what in LEAKED}


LEAKED = ("memory", "open files", "threads")


@pytest.mark.slow
def test_a_short_run_of_the_real_thing(tmp_path):
    (run,) = soak(tmp_path, 6.0, processes=1, size="short")
    assert all(0 <= note.distance <= 1 and 0 <= note.power <= 1 for note in run)
    assert run[-1].handles - run[0].handles <= 2
    assert run[-1].threads - run[0].threads <= 2
