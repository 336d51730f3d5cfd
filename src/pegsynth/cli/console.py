"""What the user sees while work goes on: messages and progress, on standard error."""

from __future__ import annotations

import sys

from pegsynth.errors import escaped
from pegsynth.progress import shown as progress_bar

__all__ = ["progress_bar", "say"]


def say(text: str) -> None:
    """Print one line for people on standard error."""
    print(escaped(text), file=sys.stderr)
