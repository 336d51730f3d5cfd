"""What the columns of weights are called: that of a row, and its replicates (R28)."""

WEIGHT = "pegs_weight"
"""The weight of a row, unless it is called otherwise; replicates have _1, _2, .. behind."""


def named_weights(name: str, replicates: int) -> tuple[str, ...]:
    """Return the names of a weight and of its replicates; none where there are no replicates."""
    numbered = tuple(f"{name}_{number}" for number in range(1, replicates + 1))
    return (name, *numbered) if numbered else ()
