"""Flags that several commands share, spelled and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .parquet or .arrow file, a quoted glob, a folder, an s3:// or gs:// address "
        "of such, or postgresql://.. or sqlite:///.. with --table or --query.",
    ),
]
Table = Annotated[
    str | None, typer.Option("--table", help="Table of the database to read, as it spells it.")
]
Query = Annotated[
    str | None, typer.Option("--query", help="SELECT to run on the database instead of a table.")
]
RowwiseQuery = Annotated[
    bool,
    typer.Option(
        "--query-is-rowwise",
        help="You declare that the query or view selects rows one by one; recorded.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        help="Save counts here on the way (CONFIDENTIAL), and go on from there; deleted at the "
        "end.",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="local: this machine; spark: a cluster (pegsynth[spark])."),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="Cluster of --engine spark [default: Spark's own setting]."
    ),
]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema.toml of the table.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
TableOutput = Annotated[
    str,
    typer.Option(
        "-o", "--output", help="File to write, or a database address with --output-table."
    ),
]
OutputTable = Annotated[
    str | None,
    typer.Option("--output-table", help="Table to make in the database that -o names."),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="auto, pegs, pegs-rs, pegs-capped, pegs-once, contingency, marginal, mi, pmi, cart, "
        "forest, bootstrap.",
    ),
]
Rows = Annotated[int, typer.Option("--rows", help="Rows of each synthetic table.")]
RowsIfAny = Annotated[
    int | None,
    typer.Option("--rows", help="Rows of each synthetic table; none with --synthesize."),
]
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
    typer.Option(
        "--order",
        help="Where heads come from: public, private (paid) or data (the paper's; not private) "
        "[default: private with --epsilon if the schema lists no heads, else public].",
    ),
]
OrderRows = Annotated[
    int | None,
    typer.Option("--order-rows", help="Rows that --order data looks at [default: all]."),
]
Sweeps = Annotated[int, typer.Option("--sweeps", help="Gibbs sweeps per row.")]
BlockSize = Annotated[int, typer.Option("--block-size", help="Rows per block of pegs-rs.")]
Visits = Annotated[
    int | None,
    typer.Option("--visits", help="Visit cap of pegs-capped [default: from rows and schema]."),
]
Chains = Annotated[int | None, typer.Option("--chains", help="Chains of pegs-capped [default: 4].")]
Urn = Annotated[
    bool | None,
    typer.Option(
        "--urn/--no-urn",
        help="Whether pegs-capped puts drawn values back into their entry [default: if cheaper].",
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        "--prior",
        help="uniform or marginal (paid) virtual rows [default: marginal for pegs-capped with "
        "--epsilon, else uniform].",
    ),
]
SeedPool = Annotated[
    str | None,
    typer.Option(
        "--seed-pool",
        help="Where chains start: uniform, marginal (paid), a file of public rows, or original "
        "(no guarantee) "
        "[default: marginal with --epsilon, else uniform].",
    ),
]
LogLinear = Annotated[
    bool,
    typer.Option("--log-linear", help="Let contingency draw from a log-linear fit of all pairs."),
]
Proper = Annotated[
    bool,
    typer.Option("--proper", help="Refit mi, cart or forest for every dataset (redrawn weights)."),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="FEATURE=VALUE", help="Keep a feature at this value."),
]
Synthesize = Annotated[
    str | None,
    typer.Option(
        "--synthesize", metavar="F,F", help="Replace only these features of the original rows."
    ),
]
NoGuarantee = Annotated[
    bool,
    typer.Option("--no-guarantee", help="Perturb with --synthesize although nothing can hold."),
]
RowsIn = Annotated[
    int | None,
    typer.Option("--rows-in", help="Public or rounded number of original rows, if it is public."),
]
Shares = Annotated[
    list[str] | None,
    typer.Option(
        "--share",
        metavar="NAME=SHARE",
        help="Share of --epsilon for order, marginals or draws [default: 0.1, 0.1, 0.8].",
    ),
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
