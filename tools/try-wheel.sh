#!/bin/sh
# Installs a wheel into an empty environment of each given Python, and uses it:
#
#   tools/try-wheel.sh dist/pegsynth-*.whl python3.11 python3.12 python3.13
#
# WITH="--constraint requirements/lowest.txt" takes other versions than the newest ones.
set -eu
wheel=$1
shift
for python in "$@"; do
    home=$(mktemp -d)
    "$python" -m venv "$home/env"
    # shellcheck disable=SC2086 (WITH is several words)
    "$home/env/bin/python" -m pip install --quiet --disable-pip-version-check ${WITH:-} "$wheel[studio]"
    cd "$home"
    "$home/env/bin/pegs" demo -o demo --rows 300 >"$home/log" 2>&1 || { cat "$home/log"; exit 1; }
    "$home/env/bin/pegs" inspect demo/public/privacy.json >"$home/log" 2>&1 || { cat "$home/log"; exit 1; }
    "$home/env/bin/pegs" studio project --no-browser 2>"$home/said" &
    studio=$!
    until grep -q http "$home/said" 2>/dev/null; do sleep 0.2; done
    "$home/env/bin/python" - "$home/said" <<'CODE'
import re, sys, urllib.request
address = re.search(r"http://\S+", open(sys.argv[1]).read())[0]
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
opener.open(address)
assert b"<h1" in opener.open(address.partition("?")[0]).read()
CODE
    kill "$studio"
    wait "$studio" || true
    echo "$("$home/env/bin/python" --version): installed, released, read, served"
    cd - >/dev/null
    rm -rf "$home"
done
