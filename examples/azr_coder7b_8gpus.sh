#!/usr/bin/env bash
# AZR's own coder-7b command with the override added, on 8 GPUs: 4 teachers and 4 students.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_coder7b_8gpus.sh [more overrides]
# AZR's script passes its arguments on to its command, so nothing of it is repeated here. Prepare
# AZR's data first, as its README says. Another arm: +population=8t8s, 2t2s, 1t1s or single.
set -euo pipefail
cd "${AZR_HOME:?name your AZR checkout}"
# AZR's script starts `python -m ...`; our command does the same, and under today's packages too.
python() { command python -m azr_population.cli azr "${@:3}"; }
export -f python
bash scripts/selfplay/coder7b.sh \
    trainer.n_gpus_per_node=8 \
    trainer.experiment_name=coder7b_4t4s \
    trainer.total_training_steps=200 \
    +population=4t4s \
    "$@"
