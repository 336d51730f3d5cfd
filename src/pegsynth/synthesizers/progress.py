"""The same names as `pegsynth.progress`, where they are declared."""

from pegsynth.progress import Progress, quiet

__all__ = ["Progress", "quiet"]
