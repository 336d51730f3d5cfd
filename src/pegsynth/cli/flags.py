"""Flags that several commands share, spelled and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A .csv, .parquet or .arrow file, or a quoted glob.")
]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema.toml of the table.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
Method = Annotated[str, typer.Option("--method", help="pegs or pegs-rs.")]
Rows = Annotated[int, typer.Option("--rows", help="Rows of each synthetic table.")]
Datasets = Annotated[int, typer.Option("--datasets", help="How many synthetic tables.")]
Epsilon = Annotated[
    float | None, typer.Option("--epsilon", help="Total epsilon for everything together.")
]
Delta = Annotated[float | None, typer.Option("--delta", help="Delta that goes with --epsilon.")]
EpsilonPerRow = Annotated[
    float | None,
    typer.Option("--epsilon-per-row", help="Epsilon per synthetic row, as the paper counts."),
]
Diversity = Annotated[float | None, typer.Option("--l", help="Entropy l-diversity instead.")]
Alpha = Annotated[
    float | None, typer.Option("--alpha", help="Virtual rows per category; 0: unperturbed.")
]
Heads = Annotated[
    int | None, typer.Option("--heads", help="Head features per target [default: 2].")
]
TailBits = Annotated[int, typer.Option("--tail-bits", help="Tail bits of the key, 0 to 16.")]
Order = Annotated[
    str | None,
    typer.Option("--order", help="public, or data (the paper's; not private) [default: public]."),
]
Sweeps = Annotated[int, typer.Option("--sweeps", help="Gibbs sweeps per row.")]
BlockSize = Annotated[int, typer.Option("--block-size", help="Rows per block of pegs-rs.")]
SeedPool = Annotated[
    str, typer.Option("--seed-pool", help="uniform, or a file of public rows to start from.")
]
Decode = Annotated[
    str, typer.Option("--decode", help="values: numbers drawn inside their bin; or labels.")
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads [default: all].")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Reproducible draws for tests; the guarantee is then none."),
]
AcceptUnreviewed = Annotated[
    bool,
    typer.Option(
        "--accept-unreviewed-schema",
        help="Go on although nobody reviewed the schema; recorded as not private.",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Where to write the ledger [default: OUTPUT.privacy.json]."),
]
