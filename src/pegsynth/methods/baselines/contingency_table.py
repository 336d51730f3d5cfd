"""Draws from the full contingency table by direct counting (R9).

The M-way table with alpha virtual rows in every cell is one entry, so a draw from it is a
row of the data with probability N/(N + A) and otherwise uniform in every feature, with
A = alpha C_1 .. C_M. Both the choice and the row follow from one exact integer (R15). No
cell is ever listed: the rows themselves are the table, and the number of cells, 6e17 for
the Adult census table, is only ever the bound of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.mechanisms.noise import Below
from pegsynth.methods.baselines.bootstrap_rows import obeying
from pegsynth.methods.gibbs.seeds import Codes
from pegsynth.schema.rules import Rule

BATCH_ROWS = 1 << 13
MOST_ATTEMPTS = 10_000
_MOST_DIGITS = 1 << 62


@dataclass(frozen=True)
class ContingencyTable:
    """The M-way table of counts, held as the rows that it counts.

    Parameters
    ----------
    codes
        All rows of the data, one line each. Confidential.
    category_counts
        C_1 .. C_M, public.
    """

    codes: AnyCodes
    category_counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape[1] != len(self.category_counts):
            raise ParameterError("the contingency table needs one column of codes per feature")

    @property
    def cells(self) -> int:
        """Number of cells, C_1 .. C_M."""
        return math.prod(self.category_counts)

    def draw(
        self,
        rows: int,
        *,
        numerator: int,
        scale: int,
        words: Below,
        rules: Sequence[Rule] = (),
    ) -> Codes:
        """Return `rows` independent draws from the perturbed table.

        Under rules the cells that break one have weight 0 and all others keep theirs: rows
        of the data that break a rule are left out of the sum, and a uniform row that breaks
        one is thrown away together with the choice that led to it. What remains is exactly
        the distribution restricted to the allowed cells, which is one draw from one
        restricted entry (R18). A published row therefore costs eta, however many attempts
        stand behind it: no attempt that was thrown away is ever shown, and no cell that a
        neighbour could change answers more than once per row.

        Parameters
        ----------
        numerator, scale
            alpha = numerator/scale virtual rows in every cell; 0 draws from the counts
            alone, and uniformly when there are none.
        words
            Source of exact integers of any size.
        rules
            Public rules, which no row drawn breaks.

        Raises
        ------
        SchemaError
            When hardly any uniform row obeys the rules. It is decided by the rules and by
            coins of their own, never by the data.
        """
        if rows < 0 or numerator < 0 or scale < 1:
            raise ParameterError("rows and alpha must not be negative, and the scale at least 1")
        if rules:
            self.check_rules(rules, words)
        valid = self.codes[obeying(self.codes, rules)] if rules else self.codes
        out = np.zeros((rows, len(self.category_counts)), dtype=np.uint32)
        for first in range(0, rows, BATCH_ROWS):
            batch = out[first : first + BATCH_ROWS]
            missing = np.arange(len(batch))
            while len(missing):
                batch[missing] = self._draw(valid, len(missing), numerator, scale, words)
                if not rules:
                    break
                missing = missing[~obeying(batch[missing], rules)]
        return out

    def _draw(self, valid: AnyCodes, count: int, numerator: int, scale: int, words: Below) -> Codes:
        """Draw rows by one integer each below s N + p C_1 .. C_M (R9)."""
        held = scale * len(valid)
        virtual = numerator
        if not held and not numerator:
            virtual = 1  # alpha = 0 and no rows: the public distribution
        bound = held + virtual * self.cells
        values = [words.below(bound) for _ in range(count)]
        rows = np.empty((count, len(self.category_counts)), dtype=np.uint32)
        real = np.array([value < held for value in values], dtype=bool)
        chosen = [value // scale for value in values if value < held]
        rows[real] = valid[np.array(chosen, dtype=np.int64)]
        cells = [(value - held) // virtual for value in values if value >= held]
        rows[~real] = decode_cells(cells, self.category_counts)
        return rows

    def check_rules(self, rules: Sequence[Rule], words: Below) -> None:
        """Refuse rules that hardly any row obeys, by looking at uniform rows alone."""
        size = 1
        tried = 0
        while tried < MOST_ATTEMPTS:
            cells = [words.below(self.cells) for _ in range(min(size, MOST_ATTEMPTS - tried))]
            if obeying(decode_cells(cells, self.category_counts), rules).any():
                return
            tried += len(cells)
            size *= 2
        raise SchemaError(
            f"none of {MOST_ATTEMPTS} rows of independent features obeys the schema's rules, so "
            "the contingency table cannot be drawn from; use a method of the pegs family"
        )


def decode_cells(cells: Sequence[int], category_counts: Sequence[int]) -> Codes:
    """Turn cell numbers of any size into rows: the digits to the radices C_1 .. C_M.

    The last feature turns fastest. Features are taken off in groups whose product fits in
    a machine word, so that few steps handle integers of arbitrary size.
    """
    rows = np.empty((len(cells), len(category_counts)), dtype=np.uint32)
    rest = list(cells)
    end = len(category_counts)
    while end:
        start, size = end, 1
        while start and size * category_counts[start - 1] < _MOST_DIGITS:
            start -= 1
            size *= category_counts[start]
        group = np.array([cell % size for cell in rest], dtype=np.int64)
        rest = [cell // size for cell in rest]
        _decode_group(group, category_counts[start:end], rows[:, start:end])
        end = start
    return rows


def _decode_group(group: NDArray[np.int64], counts: Sequence[int], rows: Codes) -> None:
    for feature in reversed(range(len(counts))):
        group, rows[:, feature] = np.divmod(group, counts[feature])
