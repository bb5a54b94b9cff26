#!/usr/bin/env bash
# AZR's own command on a CPU, with a real base and nothing scripted: stock AZR, or with `+population=...`
# a population; minutes a step. What examples/azr_ab.sh plays there:
#   bash scripts/azr_pins.sh ENV && export PATH=$PWD/ENV/bin:$PATH AZR_HOME=~/Absolute-Zero-Reasoner
#   python tools/bases/warm_up.py --out warm
#   PYTHONPATH=$AZR_HOME python tests/hosts/azr/cpu_stock/azr_prompts.py warm azr_base 400
#   BASE=$PWD/azr_base PLAY="bash $PWD/examples/azr_cpu.sh" STEPS=5 ARMS="stock single 2t2s" bash examples/azr_ab.sh
#
# The base is SmolLM2-135M, warmed up on AZR's own prompts. One of random weights shows within minutes
# that everything works, and nothing about learning:
#   python examples/tiny_base.py azr_base $AZR_HOME/data/7b_coder_seed_io.jsonl \
#       $AZR_HOME/absolute_zero_reasoner/data_construction/prompts.py
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
base=$(cd "${BASE:?name the folder of a base}" && pwd)
cd "${AZR_HOME:?name your AZR checkout}"
seeds=data/7b_coder_seed_io.jsonl data=${base}_test_answer.parquet
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1 VLLM_USE_V1=0 VLLM_CPU_KVCACHE_SPACE=1 VLLM_TARGET_DEVICE=cpu
export PYTHONPATH=$root:$AZR_HOME:${PYTHONPATH:-}

# Validation: the outputs of 24 of AZR's seed tasks. azr_ab.sh exports a function `python` for AZR's scripts.
[ -f "$data" ] || command python - "$data" "$base" $seeds <<'PYTHON'
import json, sys
from transformers import AutoTokenizer
from absolute_zero_reasoner.data_construction.constructor import get_pred_code_io_data

data, base, seeds = sys.argv[1:]
rows = [json.loads(line) for line in open(seeds)][:64]
tokenizer = AutoTokenizer.from_pretrained(base)
get_pred_code_io_data(rows, 24, "code_o", "answer_conditional", 900, data, "test", tokenizer)
PYTHON

case " $* " in
    *" +population="*)
        own=(
            actor_rollout_ref.rollout.name=hf population.rollout=torch
            population.threads="$OMP_NUM_THREADS" population.dtype=bfloat16
        ) ;;
    *)
        # AZR's own worker and vLLM rollout. Ray has to believe in a GPU; azr_stock tells veRL otherwise.
        export PYTHONPATH=$root/examples/azr_stock:$PYTHONPATH AZR_CPU=1 RAY_OVERRIDE_RESOURCES='{"GPU": 1}'
        own=(
            actor_rollout_ref.actor.strategy=fsdp actor_rollout_ref.actor.use_torch_compile=False
            +actor_rollout_ref.model.override_config._attn_implementation=sdpa
            actor_rollout_ref.rollout.free_cache_engine=False
            actor_rollout_ref.rollout.enable_chunked_prefill=False
            critic.strategy=fsdp
        ) ;;
esac
exec python -m absolute_zero_reasoner.main_azr_ppo \
    data.train_files="$data" data.val_files="$data" \
    data.train_batch_size=2 data.max_prompt_length=1100 data.max_response_length=160 \
    azr.data_selection_strategy.content_max_length=1000 azr.data_selection_strategy.io_n=1 \
    azr.problem_types='[code_i,code_o]' azr.seed_dataset=$seeds \
    azr.code_f_seed_dataset=data/7b_coder_code_f_seed_io.jsonl \
    azr.reward.n_samples=2 azr.random_print_max_programs=0 \
    algorithm.adv_estimator=reinforce_plus_plus reward_fn.extraction_type=answer_conditional \
    actor_rollout_ref.model.path="$base" actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \
    ray_init.num_cpus=4 trainer.device=cpu trainer.n_gpus_per_node=1 'trainer.logger=[console]' \
    +trainer.val_before_train=True "${own[@]}" "$@"
