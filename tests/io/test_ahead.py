"""A stream that runs ahead gives the same items, the same errors, and stops when told."""

import threading
import time

import pytest

from pegsynth.tables.reader import run_ahead


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_same_items_in_order(most):
    assert list(run_ahead(range(50), size=lambda _: 1, most=most)) == list(range(50))
    assert list(run_ahead([], size=lambda _: 1, most=most)) == []


def test_the_error_comes_after_the_items_before_it():
    def broken():
        yield 1
        yield 2
        raise ValueError("broken")

    stream = run_ahead(broken(), size=lambda _: 1, most=10)
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_making_pauses_when_enough_is_waiting():
    made = []

    def items():
        for number in range(100):
            made.append(number)
            yield number

    stream = run_ahead(items(), size=lambda _: 2, most=6)
    assert next(stream) == 0
    time.sleep(0.05)
    # Three wait, one was taken, and one more is made but not yet put down.
    assert len(made) <= 5
    stream.close()
    assert len(made) <= 6


def test_leaving_early_ends_the_thread():
    before = threading.active_count()
    stream = run_ahead(iter(range(10**9)), size=lambda _: 1, most=4)
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_leaving_early_ends_both_threads_of_a_stream_of_a_stream():
    """The second thread waits for the first, and the first for a server that says nothing."""
    before, silent, woken = threading.active_count(), threading.Event(), []

    def items():
        yield 1
        silent.wait()

    def interrupt():
        woken.append(True)
        silent.set()

    inner = run_ahead(items(), size=lambda _: 1, most=4, interrupt=interrupt)
    outer = run_ahead((item for item in inner), size=lambda _: 1, most=4, interrupt=interrupt)
    assert next(outer) == 1
    outer.close()
    del inner, outer
    assert woken
    assert threading.active_count() == before
