#!/usr/bin/env bash
# Installs what is needed and runs the tests; arguments go to pytest (e.g. -m slow tests/referee).
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/env.sh
# One thread: the tests' matrices are small, and OpenMP under contention costs ten times as much.
OMP_NUM_THREADS=1 exec .venv/bin/python -m pytest "$@"
