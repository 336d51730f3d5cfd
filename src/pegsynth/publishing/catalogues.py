"""Sentences that several catalogues ask for, each said once.

``dcat.jsonld``: the release for data catalogues, in DCAT 3; with HealthDCAT-AP for health data.

``croissant.json``: the release in the words of Croissant 1.0, with its responsible-AI fields.

Fields that nobody stated are left out. ``mlcroissant`` reads the file without an error.

``release.intoto.json``: an in-toto statement that ties the promise to the files.

It is not signed. Whoever signs it (cosign, in-toto) attests that these bytes carry this promise.

``dp-registry.yaml``: a record for the registry of differential-privacy deployments (OpenDP). What
nobody stated is left out and named in a comment, and the record says of which tier it is then.
Without differential privacy there is none.

Marks that travel with a table: inside a Parquet file, beside a CSV file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from pegsynth.inference.choice import from_released_blocks, replicates_of, without_intervals
from pegsynth.privacy import NoisyCounts, NoisyResiduals, NoisySums, Selection
from pegsynth.privacy.draw_events import DRAWS, ImputationDraws
from pegsynth.privacy.events import CategoriesFound, PooledRows, Unspent
from pegsynth.privacy.recorded import total
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.folder import sha256
from pegsynth.publishing.privacy_pages import Messages, level_of, named_unit
from pegsynth.publishing.rendering import page
from pegsynth.schema import Feature
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.tables.atomic import atomic_text
from pegsynth.tables.csv_read import protect


def described(facts: Facts) -> str:
    """Return what the publisher said of the release, or what is known of it anyway."""
    size, count = facts.size.replace("`", ""), len(facts.schema.features)
    features = "1 feature" if count == 1 else f"{count} features"
    return f"{facts.about.description or facts.mark} {size}; {features}.".strip()


def unit_word(facts: Facts) -> str:
    """Return what is protected, in a word."""
    return named_unit(facts.ledger.guarantee, facts.about, Messages("en"))


def protection(facts: Facts) -> str:
    """Say what protects the people of the original table."""
    guarantee = facts.ledger.guarantee
    if not facts.private:
        return f"{facts.mark} Entropy l-diversity, and no differential privacy."
    delta = f" at delta = {display_up(guarantee.delta)}" if guarantee.delta else ""
    return (
        f"{facts.mark} One {unit_word(facts)} of the original table is protected by differential "
        f"privacy with epsilon = {display_up(guarantee.epsilon or 0.0)}{delta} "
        f"({level_of(guarantee)} by public thresholds); privacy.json lists every event."
    )


def limitations(facts: Facts) -> str:
    """Say what users must not expect."""
    said = ["Rows are synthetic and may not be linked to people."]
    if from_released_blocks(facts.ledger):
        said.append(
            "Small groups carry more noise than large ones, and relations that no published table "
            "supports are not there: QUALITY.json lists what is supported, and how precisely."
        )
    else:
        said.append(
            "Virtual rows pull the tables towards a prior distribution, small groups the most."
        )
    several = facts.datasets > 1 and not without_intervals(facts.ledger)
    intervals = several or replicates_of(facts.ledger) is not None
    said.append(
        "Standard errors need the rules of HOW-TO-ANALYSE.md."
        if intervals
        else "No standard errors can be estimated from them: see HOW-TO-ANALYSE.md."
    )
    return " ".join(said)


def maintained(facts: Facts) -> str:
    """Say what is planned, as far as it was stated."""
    about = facts.about
    parts = [
        f"Further releases, as stated: {about.refresh.rstrip('.')}." if about.refresh else "",
        f"To be reviewed by {about.review_date}." if about.review_date else "",
    ]
    return " ".join(part for part in parts if part)


@cache
def contexts() -> dict[str, Any]:
    """Return the contexts that the standards prescribe, by file."""
    text = files("pegsynth.publishing").joinpath("contexts.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


_MEDIA: Final = "https://www.iana.org/assignments/media-types/"
_OPEN: Final = "http://publications.europa.eu/resource/authority/access-right/PUBLIC"
_PARQUET: Final = "application/x-parquet"
_IMPUTED: Final = "Completed tables: missing values were imputed from synthetic rows alone."


def croissant(facts: Facts, public: Path) -> dict[str, Any]:
    """Return the description of a folder whose tables are there."""
    about = facts.about
    creator = {"@type": "sc:Organization", "name": about.owner, "email": about.contact}
    content: dict[str, Any] = {
        "@context": contexts()["croissant.json"],
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.0",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": facts.title,
        "description": described(facts),
        "license": about.licence,
        "url": about.url,
        "datePublished": facts.date,
        "version": "1.0.0",
        "creator": creator if about.owner else "",
        "keywords": list(about.keywords),
        "rai:dataUseCases": about.purpose,
        "rai:personalSensitiveInformation": protection(facts),
        "rai:dataLimitations": limitations(facts),
        "rai:dataManipulationProtocol": f"All rows were drawn by {facts.programs}"
        + (f", method {facts.method}." if facts.method else "."),
        "rai:dataPreprocessingProtocol": about.preprocessing,
        "rai:dataImputationProtocol": _IMPUTED if facts.versions else "",
        "rai:dataReleaseMaintenancePlan": maintained(facts),
        "distribution": [_file(name, facts, public) for name in facts.files()],
        "recordSet": [_records(name, facts) for name in facts.files()],
    }
    return {key: value for key, value in content.items() if value}


def _file(name: str, facts: Facts, public: Path) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": _PARQUET if facts.table_format == "parquet" else facts.media_type,
        "sha256": sha256(public / name),
        "contentSize": f"{(public / name).stat().st_size} B",
    }


def _records(table: str, facts: Facts) -> dict[str, Any]:
    stem = table.rpartition(".")[0]
    return {
        "@type": "cr:RecordSet",
        "@id": stem,
        "name": stem,
        "description": facts.mark,
        "field": [
            _field(facts, column, feature, f"{stem}/{number}", table)
            for number, (column, feature) in enumerate(facts.described(table), start=1)
        ],
    }


def _field(
    facts: Facts, column: str, feature: Feature | None, name: str, table: str
) -> dict[str, Any]:
    """Return one column; names of features may hold spaces, which an identifier may not."""
    written = protect(column) if facts.table_format == "csv" else column
    return {
        "@type": "cr:Field",
        "@id": name,
        "name": column,
        "dataType": _data_type(facts, column, feature),
        "source": {"fileObject": {"@id": table}, "extract": {"column": written}},
    }


def _data_type(facts: Facts, column: str, feature: Feature | None) -> str:
    """Return the type of a column; one that may hold texts beside numbers is text."""
    if column in facts.weight_columns:
        return "sc:Float"
    if feature is None:
        return "sc:Integer"
    if feature.kind in TEMPORAL or facts.decode == "labels" or feature.label_of is not None:
        return "sc:Text"
    plain = not (feature.not_applicable or feature.keep_missing_codes)
    if feature.kind == "numeric" and plain:
        return "sc:Integer" if feature.integer else "sc:Float"
    return "sc:Text"


def dcat(facts: Facts, public: Path) -> dict[str, Any]:
    """Return ``dcat.jsonld`` for a folder whose tables are there.

    Of HealthDCAT-AP the fields are filled that a synthetic release has an answer to. All others are
    left out: no legal basis or health category is guessed.
    """
    about = facts.about
    health = about.sector == "Healthcare"
    content: dict[str, Any] = {
        "@context": contexts()["dcat.jsonld"],
        "@type": "dcat:Dataset",
        "dct:title": facts.title,
        "dct:description": described(facts),
        "dct:identifier": about.url,
        "dct:issued": _day(facts.date),
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": about.owner} if about.owner else "",
        "dcat:contactPoint": _contact(about.contact),
        "dct:license": _link(about.licence),
        "dct:accessRights": {"@id": _OPEN},
        "dct:spatial": about.region,
        "dcat:keyword": list(about.keywords),
        "dcat:landingPage": _link(about.url),
        "dct:type": "synthetic data",
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "dct:description": _provenance(facts),
        },
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "dct:description": facts.programs},
        "dct:accrualPeriodicity": about.refresh,
        "dcat:distribution": [_dcat_file(name, facts, public) for name in facts.files()],
    }
    if health:
        content["healthdcatap:numberOfRecords"] = facts.records
    return {key: value for key, value in content.items() if value}


def _provenance(facts: Facts) -> str:
    before = f" Done beforehand: {facts.about.preprocessing}" if facts.about.preprocessing else ""
    return f"{protection(facts)}{before}"


def _dcat_file(name: str, facts: Facts, public: Path) -> dict[str, Any]:
    path = public / name
    return {
        "@type": "dcat:Distribution",
        "dct:title": name,
        "dcat:accessURL": {"@id": name},
        "dcat:downloadURL": {"@id": name},
        "dcat:mediaType": {"@id": f"{_MEDIA}{facts.media_type}"},
        "dcat:byteSize": {"@value": str(path.stat().st_size), "@type": "xsd:nonNegativeInteger"},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": sha256(path),
        },
    }


def _contact(contact: str) -> Any:
    if not contact:
        return ""
    mail = "@" in contact and " " not in contact
    found: dict[str, Any] = {"@type": "vcard:Kind", "vcard:fn": contact}
    return found | ({"vcard:hasEmail": {"@id": f"mailto:{contact}"}} if mail else {})


def _link(address: str) -> Any:
    """Return an address as a link, and any other text as it is."""
    return {"@id": address} if address.startswith(("http://", "https://")) else address


def _day(date: str) -> Any:
    return {"@value": date, "@type": "xsd:date"} if date else ""


STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:pegsynth:release:1"
NAME = "release.intoto.json"


def attestation(facts: Facts, public: Path) -> dict[str, Any]:
    """Return the statement for a folder that is complete but for it and the checksums."""
    files = sorted(path for path in public.iterdir() if path.name != NAME)
    about = facts.about
    predicate = {
        "title": facts.title,
        "publisher": about.owner,
        "date": facts.date,
        "method": facts.method,
        "programs": msgspec.to_builtins(facts.ledger.programs),
        "guarantee": msgspec.to_builtins(facts.ledger.guarantee),
        "assumptions": [each.code for each in facts.ledger.assumptions],
        "ledger": {"name": "privacy.json", "sha256": sha256(public / "privacy.json")},
    }
    return {
        "_type": STATEMENT,
        "subject": [{"name": each.name, "digest": {"sha256": sha256(each)}} for each in files],
        "predicateType": PREDICATE,
        "predicate": {key: value for key, value in predicate.items() if value},
    }


def sidecar_name(table: str) -> str:
    """Return the name that "CSV on the Web" gives the description of a file."""
    return f"{table}-metadata.json"


def write_sidecars(public: Path, facts: Facts) -> None:
    """Write a description beside every CSV table, which says first of all that it is synthetic."""
    if facts.table_format != "csv":
        return
    for table in facts.files():
        content: dict[str, Any] = {
            "@context": "http://www.w3.org/ns/csvw",
            "url": table,
            "dc:title": facts.title,
            "dc:description": facts.mark,
            "dc:type": f"{facts.kind_of_data} data",
            **({"dc:date": facts.date} if facts.date else {}),
            **({"dc:publisher": facts.about.owner} if facts.about.owner else {}),
            "dc:relation": "privacy.json",
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
        atomic_text(public / sidecar_name(table), text + "\n")


NEEDED: Final = ("region", "owner", "owner_type", "purpose")
_SECOND: Final = ("row",)
_THIRD: Final = ("why_epsilon", "preprocessing", "refresh")


def dp_registry(facts: Facts) -> str:
    """Return the record as YAML, with a comment on what is missing."""
    events, guarantee = facts.ledger.events, facts.ledger.guarantee
    unspent = any(isinstance(event, Unspent) for event in events)
    pure = total("pure", events, rows_per_unit=guarantee.rows_per_unit)
    return page(
        "dp_registry.yaml.j2",
        facts=facts,
        missing=[*_absent(facts, NEEDED), *([] if facts.date else ["date"])],
        left_out=_absent(facts, (*_SECOND, *_THIRD)),
        slug=_slug(f"{facts.title} {facts.about.owner} {facts.date[:4]}"),
        described=described(facts),
        unit=unit_word(facts),
        rows=rows_counted(facts.ledger),
        limitations=limitations(facts),
        mechanisms=list(dict.fromkeys(_named(facts))),
        fitted=any(isinstance(event, ImputationDraws) for event in events),
        adds_up=pure is not None and float_up(pure) == guarantee.epsilon,
        left=", what was left unspent included" if unspent else "",
        tier=tier_of(facts),
    )


def tier_of(facts: Facts) -> int:
    """Return how complete the record is, in the registry's own counting."""
    if _absent(facts, NEEDED) or _absent(facts, _SECOND):
        return 1
    return 2 if _absent(facts, _THIRD) else 3


def _absent(facts: Facts, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not getattr(facts.about, name)]


_NOISE: Final = {
    NoisyCounts: "counts",
    NoisyResiduals: "residuals of counts",
    NoisySums: "sums of clipped values",
}
_OTHERS: Final = {
    Selection: "choices by the exponential mechanism",
    CategoriesFound: "categories found by noisy counts above a threshold",
    ImputationDraws: "draws from fitted models mixed with virtual rows (bounded range)",
}


def _named(facts: Facts) -> Iterator[str]:
    for recorded in facts.ledger.events:
        event = recorded.step if isinstance(recorded, PooledRows) else recorded
        if isinstance(event, NoisyCounts | NoisyResiduals | NoisySums):
            law = "Laplace" if event.mechanism == "discrete-laplace" else "Gaussian"
            yield f"discrete {law} noise on {_NOISE[type(event)]}"
        elif type(event) in _OTHERS:
            yield _OTHERS[type(event)]
        elif isinstance(event, DRAWS):
            yield "draws from counts with virtual rows (bounded range)"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
