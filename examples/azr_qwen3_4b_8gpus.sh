#!/usr/bin/env bash
# AZR's own qwen3-4b command with the override added, on 8 GPUs: 4 teachers and 4 students.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_qwen3_4b_8gpus.sh [more overrides]
#   ... population.dry_run=true population.gpu_memory=80    # memory and counts, without a GPU
# Before the first run, in AZR's checkout (its README; the tokens of <think> are untrained):
#   python absolute_zero_reasoner/utils/remove_think_qwen3_tokenizer.py --model_name Qwen/Qwen3-4B-Base
# A token's keys and values take 147 kB here and 57 kB with the 7B base, so a step is slower than there:
# by the dry run at least 146 s, with 7B 86 s.
set -euo pipefail
cd "${AZR_HOME:?name your AZR checkout}"
# AZR's script starts `python -m ...`; our command does the same, and under today's packages too.
python() { command python -m azr_population.cli azr "${@:3}"; }
export -f python
bash scripts/selfplay/qwen3_4b.sh \
    trainer.n_gpus_per_node=8 \
    trainer.experiment_name=qwen3_4b_4t4s \
    trainer.total_training_steps=200 \
    +population=4t4s \
    "$@"
