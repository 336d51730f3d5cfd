"""Work on confidential rows without a warning: whether there is one depends on the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def in_silence() -> Iterator[None]:
    """Hold back warnings of Python and NumPy, also where a caller has made errors of them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
