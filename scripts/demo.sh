#!/usr/bin/env bash
# Installs what is needed and co-evolves 4 teachers and 4 students for 32 steps on the CPU.
# Further overrides are passed on: bash scripts/demo.sh run.steps=100 run.dir=runs/long
set -euo pipefail
. "$(dirname "$0")/env.sh"
# An exam of three times the usual tasks, at the first step and the last, each sampled once: so few steps
# move its score by about as much as 60 tasks err.
exec "$venv/bin/azr-population" train population=4t4s base=nano population.batch_size=48 run.steps=32 \
    eval.every=32 eval.tasks_per_type=60 eval.samples=1 run.dir=runs/demo seed=1 "$@"
