"""How Numba is loaded: in a command, without what kernels do not use.

Numba looks for SciPy and cffi, for the sake of `np.cov` and of functions of C in compiled code.
That takes as long as the rest of it. A process that may run compiled code of others gets it all.
"""

from __future__ import annotations

import sys

_NOT_USED = ("scipy", "cffi")
_alone: list[bool] = []


def only_kernels() -> None:
    """Say that this process runs no compiled code but kernels, before any is loaded."""
    _alone[:] = [True]


def load_numba() -> None:
    """Load what kernels are typed and linked by, where they have the process for themselves."""
    if not _alone or any(name in sys.modules for name in ("numba", *_NOT_USED)):
        return
    # What is None there cannot be imported.
    sys.modules.update(dict.fromkeys(_NOT_USED))
    try:
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    finally:
        for name in _NOT_USED:
            del sys.modules[name]
