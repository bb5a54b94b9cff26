#!/usr/bin/env bash
# Installs what is needed and runs the tests in two processes; arguments go to pytest (e.g. -n 0 -m slow
# tests/referee).
# LINE=current runs them under today's versions (scripts/env.sh).
set -euo pipefail
. "$(dirname "$0")/env.sh"
# One thread: the tests' matrices are small, and OpenMP under contention costs ten times as much.
OMP_NUM_THREADS=1 exec "$venv/bin/python" -m pytest -n 2 "$@"
