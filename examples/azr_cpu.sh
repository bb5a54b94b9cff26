#!/usr/bin/env bash
# AZR's command with a population on CPUs, with a random base of a few thousand weights: the whole
# machinery in minutes (matches, judging, updates, ratings, births, checkpoint, report).
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_cpu.sh [arm] [more overrides]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${AZR_HOME:?name your AZR checkout}"
arm=${1:-2t2s}
out=${OUT:-$PWD/population_cpu}
seeds=data/7b_coder_seed_io.jsonl
code_f_seeds=data/7b_coder_code_f_seed_io.jsonl
mkdir -p "$out"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

prompts=absolute_zero_reasoner/data_construction/prompts.py
[ -d "$out/base" ] || python "$here/tiny_base.py" "$out/base" $seeds $code_f_seeds $prompts
# A validation set of four of AZR's seed tasks.
[ -f "$out/test_answer.parquet" ] || python - "$out" $seeds <<'PYTHON'
import json, sys
from transformers import AutoTokenizer
from absolute_zero_reasoner.data_construction.constructor import get_pred_code_io_data

out, seeds = sys.argv[1:]
rows = [json.loads(line) for line in open(seeds)][:64]
tokenizer = AutoTokenizer.from_pretrained(f"{out}/base")
get_pred_code_io_data(
    rows, 4, "code_o", "answer_conditional", 4000, f"{out}/test_answer.parquet", "test", tokenizer
)
PYTHON

python -m absolute_zero_reasoner.main_azr_ppo \
    data.train_files="$out/test_answer.parquet" data.val_files="$out/test_answer.parquet" \
    data.train_batch_size=2 data.max_prompt_length=4000 data.max_response_length=48 \
    azr.data_selection_strategy.content_max_length=3900 \
    azr.data_selection_strategy.io_n=1 \
    azr.seed_dataset=$seeds azr.code_f_seed_dataset=$code_f_seeds \
    azr.reward.n_samples=2 azr.random_print_max_programs=0 \
    algorithm.adv_estimator=reinforce_plus_plus \
    actor_rollout_ref.model.path="$out/base" \
    actor_rollout_ref.rollout.name=hf \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \
    reward_fn.extraction_type=answer_conditional \
    ray_init.num_cpus=4 trainer.device=cpu trainer.n_gpus_per_node=1 trainer.logger=[console] \
    trainer.total_training_steps=3 trainer.save_freq=2 +trainer.val_before_train=False \
    trainer.default_local_dir="$out" \
    +population="$arm" population.lora.rank=4 population.lora.alpha=8 \
    population.evolution.interval=2 population.threads=1 \
    "${@:2}"
