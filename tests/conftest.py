"""Shared settings; the tests folder itself is importable (``oracle``, ``significance``)."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# The first example of a test may compile a kernel, so no example has a deadline. CI repeats
# the same examples every time; elsewhere each run tries new ones.
settings.register_profile("pegsynth", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("pegsynth")
