"""Shared settings; the tests folder itself is importable (``oracle``, ``significance``)."""

import faulthandler
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# Tests may replace or close the standard error, and pytest does.
_STDERR = os.dup(2)

sys.path.insert(0, str(Path(__file__).parent))

from lanes import ALL  # noqa: E402 (found by the path above)

# The first example of a test may compile a kernel, so no example has a deadline. CI repeats
# the same examples every time; elsewhere each run tries new ones.
# `make test-all` tries twice as many.
settings.register_profile(
    "pegsynth", deadline=None, derandomize="CI" in os.environ, max_examples=100 if ALL else 50
)
settings.load_profile("pegsynth")


MOST_SECONDS = 1200
"""No test takes as long; one that hangs ends its process, which is a failure with a traceback."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True, file=_STDERR)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, so that no worker starts one when the others are done.

    Every worker begins with a part of the list; long tests are dealt out to all parts.
    """
    if not ALL:
        apart = [item for item in items if item.get_closest_marker("long_form")]
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if not item.get_closest_marker("long_form")]
    items.sort(key=_seconds, reverse=True)
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = [item for part in range(workers) for item in items[part::workers]]


def _seconds(item: pytest.Item) -> float:
    slow = item.get_closest_marker("slow")
    return slow.kwargs.get("seconds", 5.0) if slow else 0.0
