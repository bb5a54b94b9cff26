#!/usr/bin/env bash
# AZR's coder-3b command on one GPU of 24 GB: 4 teachers and 4 students on a base in bfloat16.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_coder3b_24gb.sh [more overrides]
#   ... population.dry_run=true population.gpu=4090    # memory and counts, without a GPU
# The learner and vLLM take turns on the GPU (population.offload), so the host needs 25 GB of memory. A
# step has an eighth of the rows of AZR's script. docs/azr_inside.md, Memory, has the estimates; nobody has run it.
set -euo pipefail
cd "${AZR_HOME:?name your AZR checkout}"
# AZR's script starts `python -m ...`; our command does the same, and under today's packages too.
python() { command python -m azr_population.cli azr "${@:3}"; }
export -f python
bash scripts/selfplay/coder3b.sh \
    trainer.n_gpus_per_node=1 \
    trainer.experiment_name=coder3b_24gb_4t4s \
    data.train_batch_size=8 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.9 \
    actor_rollout_ref.rollout.max_num_batched_tokens=8192 \
    actor_rollout_ref.rollout.max_num_seqs=256 \
    +population=4t4s \
    population.offload=true \
    "$@"
