#!/usr/bin/env bash
# A/B: stock AZR, the same agent as one adapter, and a population: same data, steps, samples and
# validation, then the comparison. OUT (azr_ab) holds logs, run directories and the page.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_ab.sh [more overrides, for all arms]
#   DRY=1 SEEDS="1 2 3" ARMS="stock single 4t4s" bash examples/azr_ab.sh   # dry runs only
#   DRY=1 GPU_MEMORY=80 bash examples/azr_ab.sh   # the same on a node without GPUs, for GPUs of 80 GiB
#
# What each pair shows (the table in docs/with_azr.md has all that differs):
#   single against 4t4s:   roles, matches and evolution, with samples and updates per adapter equal. In all, 4t4s
#                          has eight times the samples; its teachers learn at 0.15 of the rate, and its best rated
#                          student is validated
#   stock  against single: one LoRA adapter at ten times the rate, one update a step and solve rates by sampling,
#                          against full weights, three updates and (by AZR's default) greedy solve rates
# Proposals earn TEACHER_REWARD in single and in populations: learnability is AZR's paper's, stock its code's, which
# pays -0.5 for what nobody or everybody solves. How many seeds show what: azr-population compare --plan.
# Seeds are played in turn, all arms of a seed before the next. An interrupted run goes on from its last
# checkpoint when the script is started again. population.seed is ours; stock AZR has none, so its
# runs differ by chance alone. Skill is AZR's validation (`data.val_files`): before the first step,
# every tenth and after the last; of a population its best rated student.
# PLAY is the command that gets the overrides: AZR's script for eight GPUs, or examples/azr_cpu.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/azr_ab}
mkdir -p "$out" && out=$(cd "$out" && pwd)
steps=${STEPS:-200} seeds=${SEEDS:-1} arms=${ARMS:-stock single 4t4s}
cd "${AZR_HOME:?name your AZR checkout}"
PLAY=${PLAY:-bash scripts/selfplay/coder7b.sh trainer.n_gpus_per_node=${GPUS:-8}}

play() {  # arm, seed, more overrides
    local arm=$1 seed=$2 count=$steps path=${PYTHONPATH:-} own=()
    if [ "$arm" = stock ]; then
        path=$here/azr_stock:$path  # AZR's first checkpoint raises under the veRL that it pins
        unset -f python
        count=$((steps + 1))  # AZR plays one step less than it is told; with the override it plays all
    else
        # AZR's script starts `python -m ...`; our command does the same, and under today's packages too.
        python() { command python -m azr_population.cli azr "${@:3}"; }
        export -f python
        own=(
            +population="$arm" population.seed="$seed" population.run_dir="$out/$arm/seed_$seed"
            population.teacher_reward="${TEACHER_REWARD:-learnability}"
        )
    fi
    # The logger `console` prints the steps that `compare` reads of stock AZR; AZR's script has it on.
    PYTHONPATH=$path $PLAY trainer.project_name=ab trainer.experiment_name="${arm}_seed_$seed" \
        trainer.default_local_dir="$out/$arm/checkpoints_$seed" hydra.run.dir="$out/$arm/hydra_$seed" \
        trainer.val_before_train=True trainer.resume_mode=auto \
        trainer.total_training_steps="$count" "${own[@]}" "${@:3}"
}

refused=
for arm in $arms; do
    echo "$arm: dry run"
    if [ "$arm" = stock ]; then
        # AZR's configuration with these overrides, no more.
        play stock "${seeds%% *}" "$@" --cfg job >/dev/null || refused+=" $arm"
    else
        play "$arm" "${seeds%% *}" population.dry_run=true ${GPU_MEMORY:+population.gpu_memory=$GPU_MEMORY} "$@" ||
            refused+=" $arm"
    fi
done
[ -z "$refused" ] || { echo "would not start:$refused"; exit 1; }
[ -z "${DRY:-}" ] || exit 0

# AZR's main exits with 0 after a Ctrl-C, and that is not a finished run.
trap 'echo "stopped; the same command continues"; exit 130' INT

runs=()
for seed in $seeds; do
    for arm in $arms; do
        run=$out/$arm/seed_$seed
        mkdir -p "$out/$arm"
        if [ ! -e "$run.done" ]; then
            play "$arm" "$seed" "$@" 2>&1 | tee -i -a "$run.log"
            touch "$run.done"
        fi
        # A population's records are in its run directory; stock AZR has its log alone.
        if [ "$arm" = stock ]; then runs+=("stock=$run.log"); else runs+=("$arm=$run"); fi
    done
done

if [ "$(wc -w <<<"$arms")" -gt 1 ]; then
    command python -m azr_population.cli compare "${runs[@]}" --out "$out/compare.html"
fi
echo "run directories with report.html: $out/ARM/seed_N"
echo "members load in PEFT and vLLM: $here/load_member.py"
