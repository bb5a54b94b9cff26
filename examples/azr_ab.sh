#!/usr/bin/env bash
# A/B: stock AZR, the same agent as one adapter, and a population. Same data, steps and rows.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_ab.sh
#
# What each pair tells:
#   stock  against single: full weights against one LoRA adapter, nothing else
#   single against 4t4s:   the population, with rows, attempts and updates per adapter equal
#                          (members' trained_rows, updates and tokens in metrics.jsonl show it)
# Stock AZR's figures and ours are in the same logger under the same names; the population's own
# are under population/. Run every arm with several seeds: population.seed is ours, stock has none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${AZR_HOME:?name your AZR checkout}"
common=(trainer.n_gpus_per_node=8 trainer.project_name=ab)

# AZR plays one step less than it is told; with the override it plays all.
bash scripts/selfplay/coder7b.sh "${common[@]}" \
    trainer.total_training_steps=201 trainer.experiment_name=stock
for arm in single 4t4s; do
    bash scripts/selfplay/coder7b.sh "${common[@]}" \
        trainer.total_training_steps=200 trainer.experiment_name="$arm" +population="$arm"
done

echo "run directories, one per arm, each with report.html:"
find checkpoints/code_io/ab -type d -name population -path '*answer_conditional/population'
echo "members load in PEFT and vLLM: $here/load_member.py"
