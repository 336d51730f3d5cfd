#!/usr/bin/env bash
# Writes requirements/: the versions that are installed, and the lowest that pyproject.toml allows.
#
# lock-dev.txt pins every package, with hashes, for all platforms and Python 3.11 or newer: what
# tests and checks need.
# lock.txt pins what pegsynth itself needs, at the same versions, and what installs a checkout.
# lowest.txt has the lowest allowed version of each package that we name ourselves.
# Needs `uv`, and a package index.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    "${UV:-uv}" pip compile pyproject.toml --python-version 3.11 --quiet --no-header \
        --no-emit-index-url --custom-compile-command 'make lock' "$@"
}

compile --extra dev --universal --generate-hashes --upgrade --output-file requirements/lock-dev.txt
printf '%s\n' 'hatchling' 'editables' |
    compile - --constraint requirements/lock-dev.txt --universal --generate-hashes --upgrade \
        --output-file requirements/lock.txt
compile --extra dev --resolution lowest-direct --no-annotate --upgrade \
    --output-file requirements/lowest.txt
