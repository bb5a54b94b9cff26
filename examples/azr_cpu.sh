#!/usr/bin/env bash
# Stock AZR against a population of adapters on a CPU, with a real base and nothing scripted: a few
# steps of each, equal rows and the same validation, then the verdict. Minutes a step.
#   bash scripts/azr_pins.sh ENV && export PATH=$PWD/ENV/bin:$PATH AZR_HOME=~/Absolute-Zero-Reasoner
#   azr-population base smollm2 --out warm
#   PYTHONPATH=$AZR_HOME python tests/hosts/azr/cpu_stock/warm_up.py warm azr_base 15
#   BASE=azr_base bash examples/azr_cpu.sh [steps] [more overrides]
#
# The base is SmolLM2-135M, warmed up on AZR's own prompts. ARMS="stock single" plays some of the arms.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
base=$(cd "${BASE:?name the folder of a base}" && pwd)
steps=${1:-5}
out=${OUT:-$PWD/azr_cpu}
mkdir -p "$out" && out=$(cd "$out" && pwd)
arms=${ARMS:-stock single 2t2s}
cd "${AZR_HOME:?name your AZR checkout}"
seeds=data/7b_coder_seed_io.jsonl
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1 VLLM_USE_V1=0 VLLM_CPU_KVCACHE_SPACE=1 VLLM_TARGET_DEVICE=cpu

# Validation: the outputs of 24 of AZR's seed tasks, sat by every arm before the first step and after
# the last.
[ -f "$out/test_answer.parquet" ] || python - "$out" "$base" $seeds <<'PYTHON'
import json, sys
from transformers import AutoTokenizer
from absolute_zero_reasoner.data_construction.constructor import get_pred_code_io_data

out, base, seeds = sys.argv[1:]
rows = [json.loads(line) for line in open(seeds)][:64]
tokenizer = AutoTokenizer.from_pretrained(base)
get_pred_code_io_data(
    rows, 24, "code_o", "answer_conditional", 900, f"{out}/test_answer.parquet", "test", tokenizer
)
PYTHON

both=(
    data.train_files="$out/test_answer.parquet" data.val_files="$out/test_answer.parquet"
    data.train_batch_size=2 data.max_prompt_length=1100 data.max_response_length=160
    azr.data_selection_strategy.content_max_length=1000 azr.data_selection_strategy.io_n=1
    azr.problem_types='[code_i,code_o]' azr.seed_dataset=$seeds
    azr.code_f_seed_dataset=data/7b_coder_code_f_seed_io.jsonl
    azr.reward.n_samples=2 azr.random_print_max_programs=0
    algorithm.adv_estimator=reinforce_plus_plus reward_fn.extraction_type=answer_conditional
    actor_rollout_ref.model.path="$base" actor_rollout_ref.rollout.tensor_model_parallel_size=1
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1
    ray_init.num_cpus=4 trainer.device=cpu trainer.n_gpus_per_node=1 'trainer.logger=[console]'
    +trainer.val_before_train=True
)
play() {  # arm, its overrides
    python -m absolute_zero_reasoner.main_azr_ppo "${both[@]}" \
        trainer.default_local_dir="$out/$1" hydra.run.dir="$out/$1/hydra" "${@:2}" 2>&1 | tee "$out/$1.log"
}

for arm in $arms; do
    if [ "$arm" = stock ]; then
        # AZR's own worker and vLLM rollout. Ray has to believe in a GPU; tests/hosts/azr/cpu_stock tells veRL
        # otherwise. AZR plays one step less than it is told.
        PYTHONPATH=$root/tests/hosts/azr/cpu_stock:$AZR_HOME:${PYTHONPATH:-} RAY_OVERRIDE_RESOURCES='{"GPU": 1}' \
            play stock trainer.total_training_steps=$((steps + 1)) \
            actor_rollout_ref.actor.strategy=fsdp actor_rollout_ref.actor.use_torch_compile=False \
            +actor_rollout_ref.model.override_config._attn_implementation=sdpa \
            actor_rollout_ref.rollout.free_cache_engine=False \
            actor_rollout_ref.rollout.enable_chunked_prefill=False \
            critic.strategy=fsdp "${@:2}"
    else
        PYTHONPATH=$root:$AZR_HOME:${PYTHONPATH:-} \
            play "$arm" trainer.total_training_steps="$steps" +population="$arm" \
            actor_rollout_ref.rollout.name=hf \
            population.rollout=torch population.threads="$OMP_NUM_THREADS" population.dtype=bfloat16 \
            population.run_dir="$out/$arm/run" "${@:2}"
    fi
done

runs=()
for arm in $arms; do
    if [ "$arm" = stock ]; then runs+=("stock=$out/stock.log"); else runs+=("$arm=$out/$arm/run"); fi
done
compare() { PYTHONPATH=$root:${PYTHONPATH:-} python -m azr_population.cli compare "$@"; }
if [ "${#runs[@]}" -gt 1 ]; then compare "${runs[@]}" --out "$out/compare.html"; fi
