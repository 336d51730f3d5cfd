"""The simulated syntheses live with the benchmarks, which are no installed package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
