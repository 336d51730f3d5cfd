"""Build hook: writes into the wheel which commit it was built from, if the builder says so.

``PEGSYNTH_COMMIT`` holds the commit; ``make wheel`` sets it. Git is not asked here: the same
source must give the same wheel, whether or not it lies in a repository.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "PEGSYNTH_COMMIT"
INSIDE = "pegsynth/_build.json"


class CustomBuildHook(BuildHookInterface):
    """Adds a file with the commit to the wheel."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file before the wheel is put together."""
        commit = os.environ.get(VARIABLE, "")
        if not commit or version == "editable":
            return
        if not re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", commit):
            raise ValueError(f"{VARIABLE} must be a whole commit, 40 or 64 hexadecimal digits")
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "build.json"
        file.write_text(json.dumps({"commit": commit}) + "\n", encoding="utf-8")
        build_data["force_include"][str(file)] = INSIDE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the file away again."""
        if self._folder is not None:
            self._folder.cleanup()
