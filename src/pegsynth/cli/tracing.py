"""The table of sampling steps, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pegsynth.sampling import TraceStep
from pegsynth.schema import Schema

_WIDEST = 24
"""Characters of a label that are shown."""


def steps_table(schema: Schema, seed: tuple[int, ...], steps: Sequence[TraceStep]) -> str:
    """Return one line per draw, the drawn value between asterisks, and what changed."""
    lines = [["step", *schema.names], ["seed", *_texts(schema, seed)]]
    for number, step in enumerate(steps):
        texts = _texts(schema, step.row)
        texts[step.feature] = f"*{texts[step.feature]}*"
        sweep = number // len(schema.features) + 1
        name = f"x{step.feature + 1}" + (f" sweep {sweep}" if len(steps) > len(seed) else "")
        lines.append([name, *texts])
    final = steps[-1].row
    lines.append(["final", *_texts(schema, final)])
    changed = [n for n, a, b in zip(schema.names, seed, final, strict=True) if a != b]
    kept = [n for n, a, b in zip(schema.names, seed, final, strict=True) if a == b]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    body = [
        "  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    body.append("")
    body.append(f"differs from the seed row: {', '.join(changed) or 'nothing'}")
    body.append(f"as in the seed row: {', '.join(kept) or 'nothing'}")
    return "\n".join(body)


def _texts(schema: Schema, row: tuple[int, ...]) -> list[str]:
    return [
        _cut(" ".join(feature.labels[code].split()))
        for feature, code in zip(schema.features, row, strict=True)
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 2]}.."
