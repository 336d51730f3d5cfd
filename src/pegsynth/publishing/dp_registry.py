"""``dp-registry.yaml``: a record for the registry of differential-privacy deployments (OpenDP).

Filled from the ledger and from ``about.toml``. What nobody stated is left out and named in a
comment, and the record says of which tier it is then. Without differential privacy there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pegsynth.privacy import NoisyCounts, NoisyResiduals, NoisySums, Selection
from pegsynth.privacy.accountant import PureAccountant, total
from pegsynth.privacy.draw_events import DRAWS, ImputationDraws
from pegsynth.privacy.events import CategoriesFound, PooledRows, Unspent
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.publishing.catalogues import adjacency, described, limitations, unit_word
from pegsynth.publishing.facts import Facts

NEEDED: Final = ("region", "owner", "owner_type", "purpose")
_SECOND: Final = ("row",)
_THIRD: Final = ("why_epsilon", "preprocessing", "refresh")


def dp_registry(facts: Facts) -> str:
    """Return the record as YAML, with a comment on what is missing."""
    record = registry_record(facts)
    missing = [*_absent(facts, NEEDED), *([] if facts.date else ["date"])]
    lines = [
        "# A record for the registry of differential-privacy deployments; look it through before",
        "# you send it in. Whether the underlying data grow (data_source_type) is not known here.",
    ]
    if missing:
        lines.append(f"# Needed by the registry, and stated by nobody: {', '.join(missing)}.")
    others = _absent(facts, (*_SECOND, *_THIRD))
    if others:
        lines.append(f"# Left out, because nobody stated it: {', '.join(others)}.")
    return "\n".join((*lines, *yaml_lines(record))) + "\n"


def registry_record(facts: Facts) -> dict[str, Any]:
    """Return the record as plain objects."""
    about, guarantee = facts.about, facts.ledger.guarantee
    curator = {"data_curator_name": about.owner, "data_curator_type": about.owner_type}
    parameters: dict[str, Any] = {"epsilon": float(display_up(guarantee.epsilon or 0.0))}
    if guarantee.delta:
        parameters["delta"] = guarantee.delta
    if guarantee.rho is not None and guarantee.delta:
        parameters["rho"] = float(display_up(guarantee.rho))
    deployment: dict[str, dict[str, Any]] = {
        "basic": {
            "name": facts.title,
            "data_curators": [_stated(curator)] if about.owner else [],
            "description": described(facts),
            "intended_use": about.purpose,
            "data_product_type": "Synthetic data",
            "data_product_region": about.region,
            "data_product_sector": about.sector,
            "publication_date": facts.date,
        },
        "dp_variant": {
            "variant_name": "Pure DP" if guarantee.kind == "pure" else "Approximate DP",
            "data_domain": _domain(facts),
            "unprotected_quantities": _unprotected(facts),
        },
        "privacy_loss": {
            "privacy_unit": unit_word(facts),
            "privacy_unit_details": adjacency(facts),
            "privacy_parameters": parameters,
            "privacy_parameters_details": "Totals for the whole release, rounded up; privacy.json "
            "lists every event behind them.",
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": _actors(facts),
            "release_type": "One release",
            "release_type_details": f"Refresh, as stated: {about.refresh}" if about.refresh else "",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _before(facts),
            "mechanisms": _mechanisms(facts),
            "composition": _composition(facts),
            "post_processing": _after(facts),
            "justification": about.why_epsilon,
            "utility": limitations(facts),
        },
        "administrative": {
            "status": "Draft",
            "registry_authors": [about.owner] if about.owner else [],
            "tier": tier_of(facts),
        },
    }
    return {
        "url_slug": _slug(f"{facts.title} {about.owner} {facts.date[:4]}"),
        "deployment": {part: _stated(content) for part, content in deployment.items()},
    }


def tier_of(facts: Facts) -> int:
    """Return how complete the record is, in the registry's own counting."""
    if _absent(facts, NEEDED) or _absent(facts, _SECOND):
        return 1
    return 2 if _absent(facts, _THIRD) else 3


def _absent(facts: Facts, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not getattr(facts.about, name)]


def _stated(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value not in ("", [], None)}


def _domain(facts: Facts) -> str:
    row = f", one for each {facts.about.row}," if facts.about.row else ""
    names = ", ".join(facts.schema.names)
    found = [*facts.edges_measured, *facts.categories_found]
    measured = f" Those of {', '.join(found)} were measured." if found else ""
    return (
        f"All tables of any number of rows{row} with the features {names}; schema.toml lists their "
        f"categories and bins.{measured}"
    )


def _unprotected(facts: Facts) -> str:
    lines = [each.text for each in facts.ledger.assumptions]
    return "None in the tables. Assumed to be public: " + "; ".join(dict.fromkeys(lines)) + "."


def _actors(facts: Facts) -> str:
    owner = facts.about.owner or "The publisher"
    return (
        f"{owner} holds the original table, runs the program and publishes the folder public/; it "
        "is trusted with the data. Everybody may see what is published; nothing is assumed of "
        "what they know or how they compute."
    )


def _before(facts: Facts) -> str:
    drafted = facts.parts_drafted
    chosen = "Method and options" if drafted else "Method, options and schema"
    said = [
        facts.about.preprocessing,
        f"{chosen} were chosen without looking at the table (assumed).",
        f"Parts of the schema were first read off a table ({', '.join(drafted)}); its reviewer "
        "declared them to be public knowledge."
        if drafted
        else "",
    ]
    return " ".join(part for part in said if part)


def _mechanisms(facts: Facts) -> str:
    found = list(dict.fromkeys(_named(facts)))
    fitted = any(isinstance(event, ImputationDraws) for event in facts.ledger.events)
    exact = (
        "Draws are exact. The models that they are from are fitted in floating point; their price "
        "does not depend on what a fit gives"
        if fitted
        else "Mechanisms work in exact integer arithmetic: no floating point lies between the data "
        "and their output"
    )
    return (
        f"{'; '.join(found)}. Implemented by {facts.programs}. {exact}. Random numbers are AES in "
        "counter mode with a key from the operating system. Timing is not protected; the release "
        "is not interactive."
    )


def _named(facts: Facts) -> Iterator[str]:
    for recorded in facts.ledger.events:
        event = recorded.step if isinstance(recorded, PooledRows) else recorded
        match event:
            case NoisyCounts(mechanism="discrete-laplace"):
                yield "discrete Laplace noise on counts"
            case NoisyCounts():
                yield "discrete Gaussian noise on counts"
            case NoisyResiduals(mechanism="discrete-laplace"):
                yield "discrete Laplace noise on residuals of counts"
            case NoisyResiduals():
                yield "discrete Gaussian noise on residuals of counts"
            case NoisySums(mechanism="discrete-laplace"):
                yield "discrete Laplace noise on sums of clipped values"
            case NoisySums():
                yield "discrete Gaussian noise on sums of clipped values"
            case Selection():
                yield "choices by the exponential mechanism"
            case CategoriesFound():
                yield "categories found by noisy counts above a threshold"
            case ImputationDraws():
                yield "draws from fitted models mixed with virtual rows (bounded range)"
            case _ if isinstance(event, DRAWS):
                yield "draws from counts with virtual rows (bounded range)"


def _composition(facts: Facts) -> str:
    events, guarantee = facts.ledger.events, facts.ledger.guarantee
    unspent = any(isinstance(event, Unspent) for event in events)
    left = ", what was left unspent included" if unspent else ""
    pure = total(PureAccountant(), events, rows_per_unit=guarantee.rows_per_unit)
    if pure is not None and float_up(pure) == guarantee.epsilon:
        return f"Sequential: the epsilons of all events add up{left}."
    at = (
        "at what finding categories leaves of the stated delta"
        if facts.categories_found
        else "at the stated delta"
    )
    return (
        "Sequential, in zero-concentrated differential privacy: the rhos of all events add up"
        f"{left}, and are converted once {at}."
    )


def _after(facts: Facts) -> str:
    parts = ["Rows are drawn from what was paid for; codes become values."]
    if facts.weight_columns:
        parts.append("Weights of rows are fitted to the noisy counts and to replicates of them.")
    if facts.versions:
        parts.append("Missing values of completed tables are imputed from synthetic rows.")
    if facts.policy.k is not None:
        parts.append(f"Rare combinations of {', '.join(facts.policy.k_features)} are blanked.")
    parts += [
        f"{name} is rounded to multiples of {step:g}." for name, step in facts.policy.round_to
    ]
    return " ".join(parts)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def yaml_lines(content: Any, indent: str = "") -> Iterator[str]:
    """Yield plain objects as YAML; texts are double-quoted as in JSON, which YAML reads."""
    if isinstance(content, dict):
        for key, value in content.items():
            if isinstance(value, dict | list) and value:
                yield f"{indent}{key}:"
                yield from yaml_lines(value, f"{indent}  ")
            else:
                yield f"{indent}{key}: {_scalar(value)}"
        return
    for value in content:
        if isinstance(value, dict):
            first, *rest = yaml_lines(value, f"{indent}  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        # YAML 1.1 takes 1e-09 for a text, and 1.0e-09 for a number.
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=False)
