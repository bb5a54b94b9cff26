#!/usr/bin/env bash
# AZR's own scripts with the override added: 4 teachers and 4 students. NAME is one of
#   coder7b_8gpus   AZR's coder-7b command on 8 GPUs
#   qwen3_4b_8gpus  AZR's command for Qwen3-4B on 8 GPUs. Its keys and values take 147 kB a token and the 7B
#                   base's 57 kB, so a step is slower: by the dry run at least 146 s, with 7B 86 s. First, in
#                   AZR's checkout (its README; the tokens of <think> are untrained):
#                   python absolute_zero_reasoner/utils/remove_think_qwen3_tokenizer.py --model_name Qwen/Qwen3-4B-Base
#   coder7b_24gb    one GPU of 24 GB: the base in 4 bits, an eighth of the rows. The learner and vLLM take turns
#                   on the GPU (population.offload); the host needs up to 20 GB of memory for it. Estimated, not run.
#   coder3b_24gb    the same with the 3B base in bfloat16
#
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr.sh NAME [more overrides]
#   ... population.dry_run=true population.gpu_memory=80    # memory and counts, without a GPU
#
# Prepare AZR's data first, as its README says. Another arm: +population=8t8s, 2t2s, 1t1s or single.
set -euo pipefail
name=${1:-}
eight=(trainer.n_gpus_per_node=8 trainer.total_training_steps=200)
one=(
    trainer.n_gpus_per_node=1 data.train_batch_size=8 population.offload=true
    actor_rollout_ref.rollout.tensor_model_parallel_size=1
    actor_rollout_ref.rollout.gpu_memory_utilization=0.9
    actor_rollout_ref.rollout.max_num_batched_tokens=8192
    actor_rollout_ref.rollout.max_num_seqs=256
)
case $name in
    coder7b_8gpus | qwen3_4b_8gpus) own=("${eight[@]}") ;;
    coder7b_24gb) own=("${one[@]}" population.quantization=nf4) ;;
    coder3b_24gb) own=("${one[@]}") ;;
    *) echo "azr.sh: name one of coder7b_8gpus, qwen3_4b_8gpus, coder7b_24gb, coder3b_24gb" >&2 && exit 2 ;;
esac
arm=4t4s rest=()
for word in "${@:2}"; do
    if [[ $word == +population=* ]]; then arm=${word#*=}; else rest+=("$word"); fi
done
cd "${AZR_HOME:?name your AZR checkout}"
# AZR's script starts `python -m ...`; our command does the same, and under today's packages too. The script
# passes its arguments on to its command, so nothing of it is repeated here.
python() { command python -m azr_population.cli azr "${@:3}"; }
export -f python
bash "scripts/selfplay/${name%_*}.sh" trainer.experiment_name="${name}_$arm" +population="$arm" "${own[@]}" ${rest[@]+"${rest[@]}"}
