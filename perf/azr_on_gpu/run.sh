#!/usr/bin/env bash
# AZR's own command on one GPU with a base of random weights, timed by phase:
#     AZR_HOME=... bash perf/azr_on_gpu/run.sh ARM STEPS BASE torch|vllm OUT [override...]
# ARM is a population (single, 4t4s); BASE comes from random_base.py. ROWS (8) are a member's rows a step, PROMPT (4000)
# the longest prompt. A base that writes programs needs no script: WORKER=azr_population.hosts.azr.azr_worker.PopulationWorker
set -euo pipefail
arm=$1 steps=$2 base=$(realpath "$3") sampler=$4 out=$(realpath -m "$5"); shift 5
root=$(cd "$(dirname "$0")/../.." && pwd) rows=${ROWS:-8} prompt=${PROMPT:-4000}
export PYTHONPATH=$root:$root/tests/hosts/azr:$root/perf/azr_on_gpu:${AZR_HOME:?name your AZR checkout}:${PYTHONPATH:-}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false HYDRA_FULL_ERROR=1 RAY_DEDUP_LOGS=0 RAY_USAGE_STATS_ENABLED=0
mkdir -p "$out" && cd "$AZR_HOME"
data=$out/test_answer.parquet
# As many rows as a batch, or AZR's loader has nothing to give.
[ -f "$data" ] || python3 - "$data" "$base" $((rows > 4 ? rows : 4)) $((prompt - 100)) <<'PYTHON'
import json
import sys

from azr_population.patches import verl_shims

verl_shims.install()
from absolute_zero_reasoner.data_construction.constructor import get_pred_code_io_data
from transformers import AutoTokenizer

data, base, rows, longest = sys.argv[1:]
seeds = [json.loads(line) for line in open("data/7b_coder_seed_io.jsonl")][:64]
tokenizer = AutoTokenizer.from_pretrained(base)
kind, extraction = "code_o", "answer_conditional"
get_pred_code_io_data(seeds, int(rows), kind, extraction, int(longest), data, "test", tokenizer)
PYTHON
if [ "$sampler" = vllm ]; then
    graphs='{mode:0,cudagraph_mode:FULL_DECODE_ONLY,cudagraph_capture_sizes:[8,64,128,192,256]}'
    sampling=(
        actor_rollout_ref.rollout.name=vllm population.rollout=vllm
        actor_rollout_ref.rollout.gpu_memory_utilization=0.4 actor_rollout_ref.rollout.max_num_seqs=256
        actor_rollout_ref.rollout.max_num_batched_tokens=8192 actor_rollout_ref.rollout.enforce_eager=False
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.compilation_config=$graphs"
    )
else
    sampling=(actor_rollout_ref.rollout.name=hf population.rollout=torch)
fi
python3 -m azr_population.cli azr +population="$arm" population.run_dir="$out/run" \
    population.worker="${WORKER:-timed_worker.TimedWorker}" \
    data.train_files="$data" data.val_files="$data" data.train_batch_size="$rows" data.val_batch_size=4 \
    data.max_prompt_length="$prompt" data.max_response_length=2048 \
    azr.data_selection_strategy.content_max_length=$((prompt - 100)) azr.data_selection_strategy.num_inputs=10 \
    azr.seed_dataset=data/7b_coder_seed_io.jsonl azr.code_f_seed_dataset=data/7b_coder_code_f_seed_io.jsonl \
    'azr.problem_types=[code_i,code_o,code_f]' azr.reward.n_samples=8 azr.random_print_max_programs=0 \
    azr.executor_max_workers=12 azr.execute_max_timeout=5 reward_fn.extraction_type=answer_conditional \
    algorithm.adv_estimator=reinforce_plus_plus \
    actor_rollout_ref.model.path="$base" actor_rollout_ref.model.enable_gradient_checkpointing=True \
    actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.ref.include_ref=False actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=1 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 actor_rollout_ref.rollout.temperature=1.0 \
    trainer.n_gpus_per_node=1 trainer.nnodes=1 'trainer.logger=[console]' trainer.save_freq=-1 trainer.test_freq=-1 \
    trainer.total_training_steps="$steps" +trainer.val_before_train=False trainer.resume_mode=disable \
    trainer.default_local_dir="$out/checkpoints" hydra.run.dir="$out/hydra" "${sampling[@]}" "$@" \
    >"$out/log" 2>&1 || { tail -n 40 "$out/log"; exit 1; }
[ -f "$out/run/metrics.jsonl" ] || { tail -n 12 "$out/log"; exit; }  # a dry run
grep -h "timed:" "$out/log" || true
python3 - "$out/run/metrics.jsonl" <<'PYTHON'
import json
import sys

for line in open(sys.argv[1]):
    record = json.loads(line)
    print({key: round(value, 2) for key, value in record.items() if key.startswith(("step", "time/", "total/"))})
PYTHON
