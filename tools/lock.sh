#!/usr/bin/env bash
# Writes requirements/: the versions that CI installs, and the lowest that pyproject.toml allows.
#
# lock.txt pins every package, with hashes, for all platforms and Python 3.11 or newer.
# lowest.txt has the lowest allowed version of each package that we name ourselves.
# Needs `uv`, and a package index.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    "${UV:-uv}" pip compile pyproject.toml --extra dev --python-version 3.11 --quiet --no-header \
        --no-emit-index-url --custom-compile-command 'make lock' "$@"
}

compile --universal --generate-hashes --upgrade --output-file requirements/lock.txt
compile --resolution lowest-direct --no-annotate --upgrade --output-file requirements/lowest.txt
