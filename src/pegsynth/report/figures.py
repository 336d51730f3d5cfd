"""What the page draws: bars of every feature's shares, and the worst pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegsynth.report.words import NOT_COMPUTED, percent, short, value_text

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Marginal, Metrics

SHOWN = 30
FOLDED = 200
_COMMON = 0.1


def bar_table(metrics: Metrics, marginal: Marginal) -> dict[str, Any]:
    """Arrange one feature: rows to show, rows to fold away, and the sum of the others.

    Beyond `SHOWN` categories the commonest are shown, in the order of the codebook; the
    next `FOLDED` are folded away, and what is left is given as one sum.
    """
    original, synthetic = marginal.original, marginal.synthetic
    by_size = sorted(
        range(len(original)), key=lambda code: (-max(original[code], synthetic[code]), code)
    )
    shown, folded = sorted(by_size[:SHOWN]), sorted(by_size[SHOWN : SHOWN + FOLDED])
    others = by_size[SHOWN + FOLDED :]
    scale = max((*original, *synthetic), default=0.0) or 1.0
    digits = 1 if scale >= _COMMON else 2
    record = metrics.record("tvd1", marginal.feature)
    return {
        "name": short(marginal.feature),
        "label": marginal.label,
        "rows": [_row(marginal, code, scale, digits) for code in shown],
        "folded": [_row(marginal, code, scale, digits) for code in folded],
        "more": len(by_size) - len(shown),
        "others": len(others),
        "others_original": percent(sum(original[code] for code in others), digits=digits),
        "others_synthetic": percent(sum(synthetic[code] for code in others), digits=digits),
        "distance": value_text("tvd1", record.value if record else None),
        "floor": value_text("tvd1", record.baseline if record else None),
    }


def worst(metrics: Metrics, name: str, count: int) -> list[dict[str, str]]:
    """List the subjects that lie furthest above their floor."""
    ours = [r for r in metrics.records if r.name == name and r.subject and r.value is not None]
    ours.sort(key=lambda r: (r.baseline or 0.0) - (r.value or 0.0))
    return [
        {
            "subject": r.subject,
            "value": value_text(name, r.value),
            "floor": value_text(name, r.baseline),
            "ratio": f"{r.value / r.baseline:.1f}\u00d7"
            if r.value and r.baseline
            else NOT_COMPUTED,
        }
        for r in ours[:count]
    ]


def _row(marginal: Marginal, code: int, scale: float, digits: int) -> dict[str, str]:
    original, synthetic = marginal.original[code], marginal.synthetic[code]
    return {
        "label": short(marginal.categories[code]),
        "original": percent(original, digits=digits),
        "synthetic": percent(synthetic, digits=digits),
        "original_width": f"{100 * original / scale:.2f}",
        "synthetic_width": f"{100 * synthetic / scale:.2f}",
    }
