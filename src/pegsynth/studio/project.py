"""A project of the studio: a folder that holds what was chosen, the codebook and the releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pegsynth.errors import DataError, PegsynthError
from pegsynth.schema import Schema
from pegsynth.schema.toml import load
from pegsynth.tables.atomic import atomic_text

STEPS = {
    "table": "Table",
    "codebook": "Codebook",
    "plan": "Plan",
    "release": "Release",
    "results": "Results",
}
"""The pages of the studio in order, and what they are called."""
STATE = "studio.json"
SCHEMA = "schema.toml"
FORMAT = 1
COUNTS = ".studio/counts.json"
COMPARISON = "compare.html"
PLANNED = ("epsilon", "delta", "rows", "rows_in", "datasets", "replicates", "method", "seed")
"""What the form of the plan asks for; each is an option of ``pegs release``."""
CHOICES = (*PLANNED, "book", "resume")
"""All options of a release that a project keeps."""
DEFAULTS = {"epsilon": "1", "delta": "1e-9", "rows": "1000", "datasets": "1", "method": "auto"}


@dataclass(frozen=True)
class Project:
    """What the user has chosen so far.

    Parameters
    ----------
    folder
        Where everything of the project stands.
    data, table
        The table: a file, a folder, an address or a database; the name of its table there.
    may_see
        The user's word that they may see what stands in the rows.
    choices
        Options of a release as they were typed, by name.
    """

    folder: Path
    data: str = ""
    table: str = ""
    may_see: bool = False
    choices: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULTS))

    @classmethod
    def open(cls, folder: Path) -> Project:
        """Read the project of a folder; an empty one is new.

        Raises
        ------
        DataError
            The file is not one that the studio wrote.
        """
        try:
            told = json.loads((folder / STATE).read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise DataError(f"{folder / STATE}: written by a newer version of pegsynth")
            choices = {str(n): str(v) for n, v in told["choices"].items() if n in CHOICES}
            return cls(
                folder, str(told["data"]), str(told["table"]), told["may_see"] is True, choices
            )
        except FileNotFoundError:
            return cls(folder)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            raise DataError(
                f"{folder / STATE}: cannot be read as a project of the studio; move it away "
                "to start anew"
            ) from None

    def save(self) -> Project:
        """Write the project, readable by its owner alone: names of files may tell something."""
        told: dict[str, Any] = asdict(self)
        del told["folder"]
        text = json.dumps({"format": FORMAT, **told}, indent=1, sort_keys=True)
        atomic_text(self.folder / STATE, text, mode=0o600)
        return self

    def changed(self, **changes: Any) -> Project:
        """Return the project with some fields changed, saved."""
        return replace(self, **changes).save()

    @property
    def schema_file(self) -> Path:
        """Return where the codebook stands."""
        return self.folder / SCHEMA

    @cached_property
    def schema(self) -> Schema | None:
        """Return the codebook with its remarks; None where there is none that can be read."""
        try:
            return load(self.schema_file, notes=True)
        except PegsynthError:
            return None

    @property
    def releases(self) -> list[Path]:
        """Return the folders of finished releases, the oldest first."""
        found = [path.parent.parent for path in self.folder.glob("release-*/public/privacy.json")]
        return sorted(found, key=_number)

    @property
    def next_release(self) -> str:
        """Return the name of a release folder that is not there yet."""
        taken = [_number(path) for path in self.folder.glob("release-*")]
        return f"release-{max(taken, default=0) + 1}"


def _number(folder: Path) -> int:
    digits = folder.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
