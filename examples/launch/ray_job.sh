#!/usr/bin/env bash
# AZR's coder-7b command with 4 teachers and 4 students, as a job of a Ray cluster that runs already.
#   RAY_ADDRESS=http://HEAD:8265 AZR_HOME=/path/on/the/cluster NODES=1 GPUS=8 bash examples/launch/ray_job.sh [more overrides]
# AZR, its environment and this package have to be on every node, in the same folder.
set -euo pipefail
: "${RAY_ADDRESS:?name the dashboard of your cluster, as in http://head:8265}"
: "${AZR_HOME:?name the AZR checkout on the nodes}"
overrides=(
    trainer.n_gpus_per_node="${GPUS:-8}" trainer.nnodes="${NODES:-1}"
    trainer.experiment_name=coder7b_4t4s trainer.resume_mode=auto ray_init.num_cpus=null +population=4t4s "$@"
)
submit() {  # the same command, with what else is to be set
    ray job submit --address "$RAY_ADDRESS" --runtime-env-json "{\"env_vars\": {\"PYTHONPATH\": \"$AZR_HOME\"}}" \
        -- env -C "$AZR_HOME" bash scripts/selfplay/coder7b.sh "${overrides[@]}" "$@"
}
# The dry run takes seconds and fails if the run could not start.
submit population.dry_run=true
submit
