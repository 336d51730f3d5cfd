"""``dcat.jsonld``: the release for data catalogues, in DCAT 3; with HealthDCAT-AP for health data.

Of HealthDCAT-AP the fields are filled that a synthetic release has an answer to. All others are
left out: no legal basis or health category is guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pegsynth.publishing.catalogues import described, protection
from pegsynth.publishing.facts import Facts, sha256

CONTEXT: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "spdx": "http://spdx.org/rdf/terms#",
    "prov": "http://www.w3.org/ns/prov#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
}
_MEDIA: Final = "https://www.iana.org/assignments/media-types/"
_PUBLIC: Final = "http://publications.europa.eu/resource/authority/access-right/PUBLIC"


def dcat(facts: Facts, public: Path) -> dict[str, Any]:
    """Return the description of a folder whose tables are there."""
    about = facts.about
    health = about.sector == "Healthcare"
    content: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "dcat:Dataset",
        "dct:title": facts.title,
        "dct:description": described(facts),
        "dct:identifier": about.url,
        "dct:issued": _day(facts.date),
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": about.owner} if about.owner else "",
        "dcat:contactPoint": _contact(about.contact),
        "dct:license": _link(about.licence),
        "dct:accessRights": {"@id": _PUBLIC},
        "dct:spatial": about.region,
        "dcat:keyword": list(about.keywords),
        "dcat:landingPage": _link(about.url),
        "dct:type": "synthetic data",
        "dct:provenance": {"@type": "dct:ProvenanceStatement", "dct:description": _made(facts)},
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "dct:description": facts.programs},
        "dct:accrualPeriodicity": about.refresh,
        "dcat:distribution": [_table(name, facts, public) for name in facts.files()],
    }
    if health:
        content["healthdcatap:numberOfRecords"] = facts.records
    return {key: value for key, value in content.items() if value}


def _made(facts: Facts) -> str:
    before = f" Done beforehand: {facts.about.preprocessing}" if facts.about.preprocessing else ""
    return f"{protection(facts)}{before}"


def _table(name: str, facts: Facts, public: Path) -> dict[str, Any]:
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
