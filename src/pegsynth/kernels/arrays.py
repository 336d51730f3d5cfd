"""Types of arrays that many modules pass around, named once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Rows of codes, one column for each feature; the narrowest type that holds them."""

Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]
Int32: TypeAlias = NDArray[np.int32]
UInt16: TypeAlias = NDArray[np.uint16]
UInt32: TypeAlias = NDArray[np.uint32]
UInt64: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]
