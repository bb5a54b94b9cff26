#!/usr/bin/env bash
# Installs what is needed and co-evolves 4 teachers and 4 students for 20 steps on the CPU.
# Further overrides are passed on: bash scripts/demo.sh run.steps=100 run.dir=runs/long
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec "$venv/bin/azr-population" train population=4t4s base=nano population.rows=48 run.steps=20 run.dir=runs/demo seed=1 "$@"
