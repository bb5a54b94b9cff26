#!/usr/bin/env bash
# Installs the package as a stranger does, without constraints, into a fresh environment, and runs
# the short tests there; arguments go to pytest. To be called on a schedule: it fails when a release
# of a library breaks us before constraints/current.txt moves there.
#
#   VENV=...    where to make the environment, .venv-newest otherwise (made anew each time)
#   PYTHON=...  the Python to make it with, python3 otherwise
#   TORCH=...   what to ask pip for in torch's place, such as torch==2.13.0+cpu, where the newest
#               one would bring CUDA with it
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv-newest}
"${PYTHON:-python3}" -m venv --clear "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install "${TORCH:-torch}"
pip install --upgrade --upgrade-strategy eager --editable '.[test]' "${TORCH:-torch}"
pip list | grep -iE '^(torch|transformers|tokenizers|peft|numpy|scipy|pandas|pydantic|hydra-core) '
OMP_NUM_THREADS=1 exec "$venv/bin/python" -m pytest "$@"
