#!/usr/bin/env bash
# Makes .venv with everything that the demo and the tests need; does nothing when it is up to date.
# Needs Debian or Ubuntu with Python 3.10-3.12. Pulls the CPU build of torch, never CUDA packages.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.venv
stamp=$venv/installed
wanted=$(cat setup.py constraints-cpu.txt scripts/env.sh | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

if ! command -v "$python" >/dev/null; then
    echo "there is no $python; install it first: sudo apt-get install python3 python3-venv" >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))'; then
    echo "$("$python" --version) does not fit; name a Python 3.10-3.12: PYTHON=python3.11 bash $0" >&2
    exit 2
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian and Ubuntu keep venv in a package of its own.
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    echo "installing $package, which this machine's Python lacks"
    $sudo apt-get update -qq && $sudo apt-get install -y -qq "$package"
fi

echo "installing into $venv (a few minutes the first time)"
[ -x $venv/bin/python ] || "$python" -m venv $venv
pip() { $venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }
torch=$(grep '^torch==' constraints-cpu.txt)
# The package index that pip asks may have no CPU build; uv knows where PyTorch publishes them.
pip install "$torch" 2>/dev/null || {
    pip install uv
    $venv/bin/uv pip install --python $venv/bin/python --torch-backend cpu "$torch"
}
pip install --constraint constraints-cpu.txt --editable '.[test,report]'
echo "$wanted" >"$stamp"
