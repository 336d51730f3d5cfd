"""``release.intoto.json``: an in-toto statement that ties the promise to the files.

It is not signed. Whoever signs it (cosign, in-toto) attests that these bytes carry this promise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegsynth.publishing.facts import Facts, sha256

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
