"""What the columns and the file of weights are called (R28)."""

from pathlib import PurePath

WEIGHT = "pegs_weight"
"""The weight of a row, unless it is called otherwise; replicates have _1, _2, .. behind."""
ROW = "row"
"""The column of a file of weights that numbers the rows of the table beside it, from 1 on."""
_WEIGHTS = "-weights"


def named_weights(name: str, replicates: int) -> tuple[str, ...]:
    """Return the names of a weight and of its replicates; none where there are no replicates."""
    numbered = tuple(f"{name}_{number}" for number in range(1, replicates + 1))
    return (name, *numbered) if numbered else ()


def weight_file(table: str | PurePath) -> str:
    """Return the name of the file of weights that belongs to the file of a table.

    >>> weight_file("synthetic-1.csv")
    'synthetic-1-weights.csv'
    """
    path = PurePath(table)
    return f"{path.stem}{_WEIGHTS}{path.suffix}"
