#!/usr/bin/env bash
# Installs what is needed and co-evolves 2 teachers and 2 students for 24 steps on the CPU.
# Further overrides are passed on: bash scripts/demo.sh run.steps=100 run.dir=runs/long
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec "$venv/bin/azr-population" demo "$@"
