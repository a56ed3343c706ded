#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sees to it that the Debian packages for a target are there: installs what is missing as root,
# names it in one line otherwise.   tests/prerequisites.sh build|demo|check
set -eu

build='gcc make libinih-dev'
demo="$build python3 python3-venv"
check="$demo clang libc6-dev libcmocka-dev libopenblas-dev libopenblas0-pthread
       libopenblas-serial-dev libopenblas64-0-pthread libblas-dev liblapacke-dev
       python3-numpy python3-scipy python3-sklearn python3-pytest python3-hypothesis
       python3-threadpoolctl python3-joblib strace valgrind octave r-base-core"

case "${1:-}" in
    build) wanted=$build ;;
    demo) wanted=$demo ;;
    check) wanted=$check ;;
    *) echo "usage: $0 build|demo|check" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null 2>&1 || exit 0 # not Debian: the build itself says what it lacks

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "missing packages; as root: apt-get install$missing" >&2
    exit 1
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
