"""Draws the pictures of the site as SVG that takes its colours from the page around it.

python tools/pictures.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

Drawn = list[str]


def write(folder: Path) -> None:
    """Write all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (caption, size, parts) in {
        "flow": _flow(),
        "block": _block(),
        "sweep": _sweep(),
        "ledger": _ledger(),
    }.items():
        (folder / f"{name}.html").write_text(_figure(caption, size, parts))


def _figure(caption: str, size: tuple[int, int], parts: Drawn) -> str:
    wide, high = size
    return (
        f'<figure class="picture"><svg viewBox="0 0 {wide} {high}" width="{wide}" role="img" '
        f'aria-label="{escape(caption)}"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" '
        'refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" '
        'fill="var(--color-foreground-secondary)"/></marker></defs>'
        + "".join(parts)
        + f"</svg><figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def _box(x: float, y: float, size: tuple[float, float], lines: Sequence[str], kind: str) -> Drawn:
    wide, high = size
    drawn = [
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="6" class="{kind}"/>'
    ]
    top = y + high / 2 + 5 - 9 * (len(lines) - 1)
    for number, line in enumerate(lines):
        drawn.append(_text(x + wide / 2, top + 18 * number, line, "small" if number else ""))
    return drawn


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" class="line" '
        'marker-end="url(#tip)"/>'
    )


def _flow() -> tuple[str, tuple[int, int], Drawn]:
    stages = (
        ("table", ("Table", "one row a person"), "secret"),
        ("codes", ("Codes", "by the schema"), "secret"),
        ("counts", ("Counts", "singles, pairs, blocks"), "secret"),
        ("noise", ("Noisy counts", "or perturbed draws"), "open"),
        ("rows", ("Synthetic rows", "any number"), "open"),
        ("folder", ("Release folder", "tables and papers"), "open"),
    )
    drawn: Drawn = []
    for place, (_, lines, kind) in enumerate(stages):
        x = 10 + 158 * place + (24 if place > 2 else 0)
        drawn += _box(x, 60, (136, 62), lines, kind)
        if place:
            drawn.append(_arrow(x - 22 - (24 if place == 3 else 0), 91, x - 3, 91))
    drawn += [
        '<line x1="483" y1="20" x2="483" y2="170" class="boundary"/>',
        _text(483, 14, "privacy boundary: every crossing is an event of the ledger", "small"),
        _text(234, 158, "confidential", "small"),
        _text(734, 158, "may be published", "small"),
    ]
    caption = "From a confidential table to a release. What stands right of the boundary depends on"
    return f"{caption} the data only through paid events.", (980, 180), drawn


def _block() -> tuple[str, tuple[int, int], Drawn]:
    counts, virtual = np.array([14, 5, 0, 2]), np.array([3.0, 3.0, 3.0, 3.0])
    names = ("home", "hospital", "hospice", "other")
    drawn: Drawn = [
        _text(170, 20, "counts of one entry"),
        _text(500, 20, "with virtual rows"),
        _text(830, 20, "what a draw follows"),
    ]
    mixed = (counts + virtual) / (counts + virtual).sum()
    for place, name in enumerate(names):
        x = 50 + 62 * place
        high = 8.5 * counts[place]
        drawn.append(f'<rect x="{x}" y="{190 - high:g}" width="44" height="{high:g}" class="bar"/>')
        drawn.append(_text(x + 22, 184 - high, f"{counts[place]}", "small"))
        more = 8.5 * virtual[place]
        drawn.append(
            f'<rect x="{x + 330}" y="{190 - high:g}" width="44" height="{high:g}" class="bar"/>'
            f'<rect x="{x + 330}" y="{190 - high - more:g}" width="44" height="{more:g}" '
            'class="added"/>'
        )
        share = 250 * mixed[place]
        drawn.append(
            f'<rect x="{x + 660}" y="{190 - share:g}" width="44" height="{share:g}" class="bar"/>'
        )
        drawn.append(_text(x + 682, 184 - share, f"{mixed[place]:.2f}", "small"))
        for shift in (0, 330, 660):
            drawn.append(_text(x + 22 + shift, 208, name, "small"))
    drawn += [_arrow(300, 110, 368, 110), _arrow(630, 110, 698, 110)]
    caption = (
        "A block and its perturbation. Virtual rows (orange) bound what one real row can do to"
    )
    return (
        f"{caption} a draw: alpha of them in every category cost log(1 + 1/alpha).",
        (980, 220),
        drawn,
    )


def _sweep() -> tuple[str, tuple[int, int], Drawn]:
    features = ("age", "sex", "ward", "stay", "charge")
    heads = {0: (1, 3), 1: (0, 2), 2: (0, 3), 3: (2, 4), 4: (2, 3)}
    drawn: Drawn = []
    for step in range(len(features)):
        y = 34 + 48 * step
        drawn.append(_text(60, y + 22, f"step {step + 1}", "small"))
        for place, name in enumerate(features):
            kind = "open" if place == step else "secret" if place in heads[step] else "box"
            drawn += _box(110 + 150 * place, y, (126, 34), (name,), kind)
    drawn.append(
        _text(
            480,
            20,
            "green: drawn anew; red frame: its head features, which name the entry",
            "small",
        )
    )
    caption = (
        "One Gibbs sweep. Every feature in turn is drawn from its block, given the values that"
    )
    return f"{caption} its head features have in the row so far.", (880, 284), drawn


PURPOSES = {
    "total": "number of rows",
    "marginals": "one-way counts",
    "heads": "choices of blocks",
    "block": "blocks",
    "second round": "choices of tables",
    "table": "pairs and triples",
}


def _ledger() -> tuple[str, tuple[int, int], Drawn]:
    """Show where the budget of a release of built-in rows went, as its ledger says."""
    import pegsynth
    from pegsynth.datasets import discharge, discharge_schema

    model = pegsynth.fit(
        discharge(20_000, seed=1),
        discharge_schema(),
        method="pegs-once",
        epsilon=1.0,
        delta=1e-9,
        seed=1,
    )
    prices = model.ledger.to_frame()["rho"]
    spent = dict.fromkeys(PURPOSES.values(), 0.0)
    for event, price in zip(model.ledger.events, prices, strict=True):
        name = PURPOSES.get(getattr(event, "purpose", ""))
        if name and price:
            spent[name] += price
    whole, before = sum(spent.values()), 0.0
    drawn: Drawn = []
    for place, (name, price) in enumerate(spent.items()):
        y, share = 14 + 34 * place, price / whole
        drawn.append(_text(190, y + 17, name, anchor="end"))
        drawn.append(
            f'<rect x="{200 + 640 * before:g}" y="{y}" width="{max(640 * share, 1.5):g}" '
            'height="24" class="bar"/>'
        )
        drawn.append(_text(208 + 640 * (before + share), y + 17, f"{share:.1%}", "small", "start"))
        before += share
    drawn.append('<line x1="840" y1="8" x2="840" y2="218" class="boundary"/>')
    drawn.append(_text(840, 234, "the whole budget", "small"))
    caption = "Where the budget goes: a `pegs-once` release of 20,000 built-in rows at epsilon 1."
    return caption.replace("`", ""), (960, 244), drawn


if __name__ == "__main__":
    write(Path(sys.argv[1]))
