"""The bootstrap: original rows, drawn with replacement.

It is the paper's baseline for attacks and promises nothing: every synthetic row is a row
of the data. Indices are exact uniform integers (R15), so that nothing but the method
itself separates it from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.methods.gibbs.seeds import Codes, FilePool
from pegsynth.random import Words
from pegsynth.schema.rules import Rule


def obeying(codes: AnyCodes, rules: Sequence[Rule]) -> NDArray[np.bool_]:
    """Say for every row whether it obeys all rules (R18)."""
    obeyed = np.ones(len(codes), dtype=bool)
    for rule in rules:
        obeyed &= ~rule.broken_by(codes)
    return obeyed


@dataclass(frozen=True)
class BootstrapRows:
    """The rows of the data.

    Parameters
    ----------
    codes
        All rows, one line each. Confidential.
    """

    codes: AnyCodes

    def draw(self, rows: int, *, words: Words, rules: Sequence[Rule] = ()) -> Codes:
        """Return `rows` original rows, drawn with replacement among those that obey the rules."""
        valid = self.codes[obeying(self.codes, rules)] if rules else self.codes
        if not len(valid):
            raise SchemaError(
                "the table holds no row that obeys the schema's rules and the values of --where, "
                "so there is none to draw; check both"
            )
        return FilePool(valid.astype(np.uint32)).draw(rows, words.take)
