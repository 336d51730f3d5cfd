"""The Dockerfile: checked by a linter, because no engine that could build it runs here."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_a_linter_finds_nothing():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0


def test_a_linter_finds_what_is_wrong(tmp_path):
    broken = tmp_path / "Dockerfile"
    broken.write_text(DOCKERFILE.replace("USER 1000", "USER root"))
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, broken], capture_output=True, text=True, check=False)
    assert "DL3002" in done.stdout


def test_what_is_copied_is_there_and_versions_are_locked():
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split())
    assert "--require-hashes" in DOCKERFILE
    assert "\nUSER 1000\n" in DOCKERFILE
