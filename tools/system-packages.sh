#!/usr/bin/env bash
# Debian packages that tests need beside Python's.
#
#   tools/system-packages.sh              install what is missing
#   tools/system-packages.sh --has NAME   status 0 if that package is there
#
# It installs as root, or under CI with sudo. Elsewhere it only says what is missing: the tests
# that need it are skipped. Under CI a package that cannot be installed is a failure.
set -uo pipefail

# One line each: the package, and a command that succeeds when it is there.
PACKAGES='
chromium                  command -v chromium
openjdk-17-jre-headless   java --version | grep -qE "^(openjdk|java) (1[7-9]|2[0-9])"
postgresql                ls /usr/lib/postgresql/*/bin/initdb
r-base-core               Rscript --version
r-cran-survey             Rscript -e "library(survey)"
'

has() {
    bash -c "$1" >/dev/null 2>&1
}

probe_of() {
    awk -v name="$1" '$1 == name { $1 = ""; print substr($0, 2) }' <<<"$PACKAGES"
}

if [ "${1:-}" = --has ]; then
    probe=$(probe_of "${2:?--has needs the name of a package}")
    [ -n "$probe" ] || { echo "system-packages: no package is called $2" >&2; exit 2; }
    has "$probe"
    exit
fi

missing=()
for name in $(awk 'NF { print $1 }' <<<"$PACKAGES"); do
    has "$(probe_of "$name")" || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if [ -z "${CI:-}" ]; then
        echo "system-packages: missing: ${missing[*]}; the tests that need them are skipped" >&2
        exit 0
    fi
    as_root=(sudo -n)
fi

get() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=300 "$@"
}

echo "system-packages: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ get update; get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1

for name in "${missing[@]}"; do
    has "$(probe_of "$name")" && continue
    tail -n 20 "$log" >&2
    echo "system-packages: $name is still missing; the tests that need it cannot run" >&2
    [ -n "${CI:-}" ] && exit 1
done
exit 0
