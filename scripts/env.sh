#!/usr/bin/env bash
# Makes a virtual environment with everything that the demo and the tests need; does nothing when it
# is up to date. The other scripts source this one and find it in $venv, its constraints in
# $constraints.
#
#   LINE=pins     the versions that AZR pins (constraints/pins.txt), Python 3.10-3.12, in .venv-pins
#   LINE=current  today's versions (constraints/current.txt), Python 3.10-3.14, in .venv-current
#   (no LINE)     the first of these that the Python can have, in .venv
#   PYTHON=...    the Python to make it with, python3 otherwise
#
# Needs Debian or Ubuntu. Takes the CPU build of torch where there is one to be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.venv${LINE:+-$LINE}

python=${PYTHON:-python3}
if [ -z "${PYTHON:-}" ] && [ -x "$venv/bin/python" ]; then
    python=$venv/bin/python
fi

fail() {
    echo "$*" >&2
    exit 2
}

command -v "$python" >/dev/null ||
    fail "there is no $python; install it first: sudo apt-get install python3 python3-venv"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version-${LINE:-} in
    3.1[34]-pins)
        fail "what AZR pins has no builds for Python $version; leave LINE=pins out, or name an older" \
            "Python: PYTHON=python3.11 LINE=pins bash $0" ;;
    3.1[012]-*) line=${LINE:-pins} ;;
    3.1[34]-*) line=${LINE:-current} ;;
    *) fail "Python $version does not fit; name a Python 3.10-3.14: PYTHON=python3.11 bash $0" ;;
esac
constraints=constraints/$line.txt
[ -f "$constraints" ] || fail "LINE=$line is none of $(cd constraints && echo *.txt | sed 's/\.txt//g')"

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

make_venv() {
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        # Debian and Ubuntu keep venv in a package of its own.
        local sudo
        sudo=$([ "$(id -u)" = 0 ] || echo sudo)
        echo "installing python$version-venv, which this machine's Python lacks"
        $sudo apt-get update -qq && $sudo apt-get install -y -qq "python$version-venv"
    fi
    if ! "$venv/bin/python" -c "import pip, sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null ||
        grep -v -x -F "$place" <(head -n 1 "$venv/installed" 2>/dev/null) | grep -q '^Python '; then
        "$python" -m venv --clear "$venv"
    fi
}

install_torch() {
    local torch
    torch=$(grep '^torch==' "$constraints")
    pip install "$torch+cpu" 2>/dev/null && return
    # The package index that pip asks has no CPU build; uv knows where PyTorch publishes them.
    pip install uv
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --torch-backend cpu "$torch" && return
    echo "no CPU build of $torch for Python $version can be reached; taking the package index's own, which" \
        "brings CUDA with it: 2.7 GB to download, 4.7 GB in $venv"
    pip install "$torch" || fail "$torch was not installed, for the reason above; if it has no build for Python" \
        "$version, name another: PYTHON=python3.11 bash $0"
}

# Where the environment was made: its programs name the place, so one that was moved or copied would be another's.
place="Python $version in $(pwd -P)"
wanted=$(echo "$place"; cat setup.py pyproject.toml "$constraints" scripts/env.sh | sha256sum)
if [ "$wanted" != "$(cat "$venv/installed" 2>/dev/null || true)" ]; then
    echo "installing the $line line of versions into $venv with Python $version (a few minutes the first time)"
    make_venv
    install_torch
    pip install --constraint "$constraints" --editable '.[test]'
    echo "$wanted" >"$venv/installed"
fi
