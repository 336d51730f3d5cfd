"""What is true of a run, read off what it was given and what it wrote, for tests of documents.

Nothing here asks `pegsynth.publishing`: the facts come from the schema that was given, from the
flags, from the events and assumptions of ``privacy.json`` as plain JSON, and from the files.
"""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from paper_runs import Run

from pegsynth.schema import Feature, Schema

VIRTUAL = ("pegs", "pegs-rs", "pegs-capped", "contingency", "marginal", "pmi")
"""Methods that draw under virtual rows."""


@dataclass(frozen=True)
class Told:
    """A run and the folder that it wrote."""

    run: Run
    folder: Path

    @property
    def public(self) -> Path:
        return self.folder / "public"

    # What was given

    @cached_property
    def schema(self) -> Schema:
        return self.run.schema()

    def flag(self, name: str) -> Any:
        """Return what follows a flag; True where nothing does, None where it is not there."""
        flags = [str(flag) for flag in self.run.flags]
        if name not in flags:
            return None
        after = flags[flags.index(name) + 1 :][:1]
        return after[0] if after and not after[0].startswith("--") else True

    @property
    def about(self) -> dict[str, Any]:
        return dict(self.run.about or {})

    @property
    def method(self) -> str:
        return str(self.flag("--method"))

    @property
    def tables(self) -> int:
        return int(self.flag("--datasets") or 1)

    @property
    def replicates(self) -> int:
        """Replicate weights: 20 where nobody said how many and the method can make them."""
        without = self.tables > 1 or self.versions or self.two_tables
        without = without or self.method != "pegs-once" or self.flag("--quality")
        without = without or (self.schema.panel is not None and self.schema.panel.pooled)
        stated = self.flag("--replicates")
        return int(stated) if stated is not None else (0 if without else 20)

    @property
    def versions(self) -> int:
        return int(self.flag("--imputations") or 3) if self.flag("--complete") else 0

    @property
    def panel(self) -> Any:
        """The panel of a release that is not written wide."""
        return None if self.flag("--wide") else self.schema.panel

    @property
    def two_tables(self) -> bool:
        return self.panel is not None and self.panel.tables is not None

    @property
    def kept(self) -> list[str]:
        replaced = self.flag("--synthesize")
        return [n for n in self.schema.names if replaced and n != replaced]

    @property
    def binned(self) -> list[Feature]:
        """Features that were drawn inside bins; of a panel that is written wide, every position."""
        found = [f for f in self.schema.features if f.binned and f.name not in self.kept]
        if not self.flag("--wide") or self.schema.panel is None:
            return found
        positions = self.schema.panel.positions
        return [f for f in found for _ in positions]

    @property
    def private_edges(self) -> list[Feature]:
        return [f for f in self.binned if f.private_edges]

    @property
    def found(self) -> list[str]:
        return [f.name for f in self.schema.features if f.private_categories]

    @property
    def drafted(self) -> bool:
        return any(c.drafted_from_data for c in self.schema.columns)

    @property
    def drafted_rules(self) -> bool:
        return any(rule.drafted_from_data for rule in self.schema.rules)

    @property
    def released(self) -> bool:
        return self.method == "pegs-once"

    @property
    def virtual(self) -> bool:
        return self.method in VIRTUAL and not self.resampled

    @property
    def resampled(self) -> bool:
        return self.method == "bootstrap" or self.flag("--alpha") == "0"

    @property
    def own_noise(self) -> bool:
        return self.released and self.tables > 1 and not self.flag("--shared-noise")

    @property
    def shared_noise(self) -> bool:
        return self.released and not self.own_noise and not self.replicates

    @property
    def no_intervals(self) -> bool:
        return self.virtual and self.tables > 1 and not self.flag("--l")

    @property
    def analyses(self) -> bool:
        return bool(self.schema.analyses)

    # What was written

    @cached_property
    def ledger(self) -> dict[str, Any]:
        return json.loads((self.public / "privacy.json").read_text())

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return [event.get("step", event) for event in self.ledger["events"]]

    def has(self, kind: str, **fields: Any) -> bool:
        return any(
            event["kind"] == kind and all(event.get(k) == v for k, v in fields.items())
            for event in self.events
        )

    def assumed(self, code: str) -> dict[str, Any] | None:
        found = [a.get("parameters", {}) for a in self.ledger["assumptions"] if a["code"] == code]
        return found[0] if found else None

    @property
    def guarantee(self) -> dict[str, Any]:
        return self.ledger["guarantee"]

    @property
    def private(self) -> bool:
        return self.guarantee["kind"] in ("pure", "approximate")

    @property
    def unit(self) -> bool:
        return self.guarantee["unit"] == "unit"

    @cached_property
    def published(self) -> Schema:
        return Schema.load(self.public / "schema.toml")

    @cached_property
    def quality(self) -> dict[str, Any]:
        return json.loads((self.public / "QUALITY.json").read_text())

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """The columns of every table's file, as a reader finds them."""
        found = {}
        for path in sorted(self.public.iterdir()):
            if not path.name.startswith(("synthetic-", "completed-")):
                continue
            if path.suffix == ".parquet":
                found[path.name] = pq.read_schema(path).names
            elif path.suffix == ".csv":
                with path.open(newline="") as handle:
                    found[path.name] = next(csv.reader(handle))
        return found

    def text(self, document: str) -> str:
        """Return the prose of a document on one line: no code, no rows of tables."""
        path = self.public / document
        if not path.exists():
            path = self.folder / "internal" / document
        return prose(path) if path.exists() else ""


def prose(path: Path) -> str:
    """Return the sentences of a file on one line."""
    text = path.read_text()
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```$", " ", text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"^\|.*$", " ", text, flags=re.MULTILINE)
    elif path.suffix == ".html":
        text = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", text, flags=re.DOTALL)
        text = re.sub(r"<(?!/?(code|bdi|strong)\b)[^>]+>", " ~ ", text)
        text = html.unescape(re.sub(r"<[^>]+>", "", text))
    elif path.suffix == ".yaml":
        lines = re.findall(r'^(?:#|.*?(?:: |- )")(.*?)"?$', text, flags=re.MULTILINE)
        text = " ~ ".join(line.replace('\\"', '"') for line in lines)
    elif path.suffix in (".json", ".jsonld"):
        text = " ~ ".join(_texts(json.loads(text)))
    return " ".join(text.split())


def _texts(content: Any, key: str = "") -> list[str]:
    """Return the values of a catalogue's record that are sentences."""
    if isinstance(content, dict):
        return [text for name, value in content.items() for text in _texts(value, name)]
    if isinstance(content, list):
        return [text for value in content for text in _texts(value, key)]
    told = key.rpartition(":")[2] in ("description", "computed_from", "note", "trusted", "type")
    return [content] if isinstance(content, str) and (told or key.startswith("rai:")) else []
