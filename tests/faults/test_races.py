"""Several runs at once: into one folder, on one model, in threads of one process."""

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress

import numpy as np
import pytest

from checks.faults.works import whole_release
from command import PEGS, check_refused, done, pegs, pegs_process
from pegsynth import PeGS
from pegsynth.errors import BudgetError
from pegsynth.methods.session import Spent
from pegsynth.publishing import folder as folders
from pegsynth.publishing.folder import new_folder
from pegsynth.storage.book import booking as bookings
from pegsynth.storage.book.book_file import create_book, read_book
from pegsynth.storage.book.book_policy import BookPolicy
from pegsynth.storage.model_file import load_model, read_manifest, save_model
from pegsynth.storage.spending import locked, read_spent, spent_path, write_spent
from small_release import settled_plan, small_schema, small_table

RACERS, ALLOWED, EACH = 8, 3, 10


@pytest.fixture
def place(tmp_path):
    small_table(300).write_csv(tmp_path / "data.csv")
    small_schema().save(tmp_path / "schema.toml")
    return tmp_path


def fit(place, name="m.pegs"):
    flags = ("--method", "pegs", "--epsilon", 20, "--rows", ALLOWED * EACH)
    done("fit", place / "data.csv", "--schema", place / "schema.toml", *flags, "-o", place / name)
    return place / name


@pytest.mark.slow
def test_eight_processes_race_for_a_budget_of_three(place):
    model = fit(place)

    def run(number):
        output = ("-o", place / f"out{number}.csv")
        return pegs_process("sample", model, "--rows", EACH, *output)

    with ThreadPoolExecutor(RACERS) as pool:
        outcomes = list(pool.map(run, range(RACERS)))
    assert sorted(outcome.code for outcome in outcomes) == [0] * ALLOWED + [2] * (RACERS - ALLOWED)
    assert len(list(place.glob("out?.csv"))) == ALLOWED
    assert read_spent(model, read_manifest(model).identity).rows == ALLOWED * EACH
    for outcome in outcomes:
        if outcome.code:
            check_refused(outcome, "covers 0 more rows")


@pytest.mark.slow
def test_eight_processes_race_for_a_budget_book_that_covers_three(place):
    create_book(place / "b.book", BookPolicy(epsilon=1.0))

    def run(number):
        line = ("synthesize", place / "data.csv", "--schema", place / "schema.toml")
        flags = ("--method", "pegs-once", "--rows", EACH, "--epsilon", 0.33, "--threads", 1)
        output = ("--book", place / "b.book", "-o", place / f"out{number}.csv")
        return pegs_process(*line, *flags, *output)

    with ThreadPoolExecutor(RACERS) as pool:
        outcomes = list(pool.map(run, range(RACERS)))
    assert sorted(outcome.code for outcome in outcomes) == [0] * ALLOWED + [2] * (RACERS - ALLOWED)
    book = read_book(place / "b.book")
    assert [entry.state for entry in book.entries] == ["settled"] * ALLOWED
    assert float(book.spent().epsilon) == pytest.approx(0.99)
    for outcome in outcomes:
        if outcome.code:
            check_refused(outcome, "does not cover this run")


def test_a_book_without_its_lock_is_caught(place, monkeypatch):
    """The broken twin: whoever looks before another has written spends the same again."""
    path = place / "b.book"
    create_book(path, BookPolicy(epsilon=1.0))
    plan = settled_plan(small_schema(), method="pegs-once", epsilon=0.6, rows=5)
    meet = threading.Barrier(2)
    check = bookings._check

    def slowly(*given):
        check(*given)
        with suppress(threading.BrokenBarrierError):
            meet.wait(1)

    monkeypatch.setattr(bookings, "_check", slowly)

    def spend(_):
        try:
            with bookings.booked(path, small_schema(), plan, run="test", seeded=False):
                pass
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(spend, range(2))) == [False, True]
    monkeypatch.setattr("pegsynth.storage.book.book_file.holding", lambda path: nullcontext())
    path.unlink()
    create_book(path, BookPolicy(epsilon=1.0))
    meet.reset()
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(spend, range(2))) == [True, True]


def test_whoever_waited_for_a_model_that_was_replaced_locks_the_new_one(place):
    """The old inode is nobody's model: two could hold `one model` at once."""
    model = fit(place)
    entered, finish = threading.Event(), threading.Event()
    order = []

    def wait():
        with locked(model):
            order.append("waiter")
            entered.set()
            finish.wait(120)

    with locked(model):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not entered.wait(0.3)
        fit(place, "other.pegs")
        os.replace(place / "other.pegs", model)
    assert entered.wait(120)
    other = threading.Thread(target=lambda: [None for _ in [0] if _enter(model, order)])
    other.start()
    other.join(0.3)
    assert order == ["waiter"], "two hold the model under one name"
    finish.set()
    waiter.join(120)
    other.join(120)
    assert order == ["waiter", "other"]


def _enter(model, order):
    with locked(model):
        order.append("other")


def test_a_model_that_replaces_another_keeps_its_own_record(place, monkeypatch):
    """A kill between model and record leaves a model that can be sampled, or the old one."""
    model = fit(place)
    old = read_manifest(model).identity
    write_spent(model, old, Spent(ALLOWED * EACH))
    monkeypatch.setattr("pegsynth.storage.model_file.adopt_spent", lambda model: None)
    save_model(load_model(model), model)
    monkeypatch.undo()
    new = read_manifest(model).identity
    assert new != old
    assert spent_path(model).with_suffix(".spent.new").exists()
    assert read_spent(model, new).rows == 0
    assert not spent_path(model).with_suffix(".spent.new").exists()
    done("sample", model, "--rows", EACH, "-o", place / "out.csv")
    assert read_spent(model, new).rows == EACH


def test_a_waiting_record_never_gives_budget_back(place):
    model = fit(place)
    identity = read_manifest(model).identity
    write_spent(model, identity, Spent(0), replacing=True)
    write_spent(model, identity, Spent(ALLOWED * EACH))
    check_refused(pegs("sample", model, "--rows", 1, "-o", place / "out.csv"), "covers 0 more")


@pytest.mark.slow
@pytest.mark.parametrize("force", [True, False])
def test_two_releases_into_one_folder(place, force):
    flags = ("--epsilon", "5", "--rows", "50", "-o", str(place / "run"))
    more = ("--force",) if force else ()
    line = [*PEGS, "release", str(place / "data.csv"), "--schema", str(place / "schema.toml")]
    runs = [
        subprocess.Popen([*line, *flags, *more], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for run in runs:
        run.communicate(timeout=600)
    codes = sorted(run.returncode for run in runs)
    assert codes == ([0, 0, 0] if force else [0, 2, 2])
    whole_release(place / "run")
    assert {path.name for path in place.iterdir()} == {"data.csv", "schema.toml", "run"}


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_whole(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(folders, "_exchanged", lambda one, other: False)
    target = tmp_path / "run"

    def write(path, content):
        with new_folder(path, force=True) as building:
            (building / "public").mkdir()
            for name in ("privacy.json", "SHA256SUMS"):
                (building / "public" / name).write_text(content)

    def content_of(path):
        return (path / "public" / "privacy.json").read_text()

    for content in ("first", "second"):
        write(target, content)
        assert content_of(target) == content
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    (tmp_path / "link").symlink_to("run")
    write(tmp_path / "link", "third")
    assert content_of(tmp_path / "link") == "third"
    assert content_of(target) == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "run"]


def test_threads_share_neither_budget_nor_keystreams():
    """Eight threads ask one model for rows; three get them, all from keystreams of their own."""
    model = PeGS(method="pegs", epsilon=20.0, rows=ALLOWED * EACH, threads=2)
    model.fit(small_table(300), small_schema())
    numbers, stream = [], model.session.stream
    reserve = stream.substreams
    stream.substreams = lambda count: numbers.append((reserve(count), count)) or numbers[-1][0]
    start = threading.Barrier(RACERS)

    def draw(_):
        start.wait()
        try:
            return model.sample(EACH).height
        except BudgetError:
            return 0

    with ThreadPoolExecutor(RACERS) as pool:
        heights = list(pool.map(draw, range(RACERS)))
    assert sorted(heights) == [0] * (RACERS - ALLOWED) + [EACH] * ALLOWED
    assert model.rows_left == 0
    taken = np.concatenate([np.arange(first - 2**63, first - 2**63 + n) for first, n in numbers])
    # Each sample takes two: for its rows, and for the categories inside merged levels.
    assert len(np.unique(taken)) == len(taken) == 2 * ALLOWED


def test_threads_of_a_seeded_model_draw_different_rows():
    """One seed, several threads: no two samples are made of the same words."""
    model = PeGS(method="pegs", alpha=1.0, rows=10**6, seed=3)
    model.fit(small_table(300), small_schema())
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: model.sample(400), range(8)))
    texts = {table.write_csv() for table in tables}
    assert len(texts) == 8
