"""Shared settings; the tests folder itself is importable (``oracle``, ``significance``)."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# The first example of a test may compile a kernel, so no example has a deadline. CI repeats
# the same examples every time; elsewhere each run tries new ones.
settings.register_profile("pegsynth", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("pegsynth")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, so that no worker starts one when the others are done.

    Every worker begins with a part of the list; long tests are dealt out to all parts.
    """
    items.sort(key=_seconds, reverse=True)
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = [item for part in range(workers) for item in items[part::workers]]


def _seconds(item: pytest.Item) -> float:
    slow = item.get_closest_marker("slow")
    return slow.kwargs.get("seconds", 5.0) if slow else 0.0
