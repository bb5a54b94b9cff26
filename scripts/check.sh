#!/usr/bin/env bash
# Formats, lints, types, and who may import whom. With --check nothing is changed; CI calls it so.
set -euo pipefail
. "$(dirname "$0")/env.sh"
bin=$venv/bin
if [ "${1:-}" = --check ]; then
    $bin/ruff format --check --quiet . || { echo "run: bash scripts/check.sh" >&2; exit 1; }
    $bin/ruff check .
else
    $bin/ruff format --quiet .
    $bin/ruff check --fix .
fi
$bin/mypy
$bin/lint-imports
