#!/usr/bin/env bash
# A/B: stock AZR, the same agent as one adapter, and a population, then the verdict. Same data, steps,
# rows and validation; OUT holds the arms' logs and the page.
#   AZR_HOME=~/Absolute-Zero-Reasoner bash examples/azr_ab.sh [more overrides, for all arms]
#
# What each pair tells:
#   stock  against single: full weights against one LoRA adapter, nothing else
#   single against 4t4s:   the population, with rows, attempts and updates per adapter equal
#                          (members' trained_rows, updates and tokens in metrics.jsonl show it)
# Skill is AZR's validation (`data.val_files`), which every arm sits before the first step, every tenth
# and after the last; of a population its best rated student. Run every arm with several seeds:
# population.seed is ours, stock has none; `compare` takes several logs under one name.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/azr_ab}
mkdir -p "$out" && out=$(cd "$out" && pwd)
cd "${AZR_HOME:?name your AZR checkout}"

# The logger `console` prints the steps that `compare` reads of stock AZR; AZR's script has it on.
play() {  # arm, its steps, its overrides
    bash scripts/selfplay/coder7b.sh trainer.n_gpus_per_node=8 trainer.project_name=ab \
        trainer.val_before_train=True trainer.experiment_name="$1" trainer.total_training_steps="$2" \
        "${@:3}" 2>&1 | tee "$out/$1.log"
}
# AZR plays one step less than it is told; with the override it plays all.
play stock 201 "$@"
play single 200 +population=single population.run_dir="$out/single" "$@"
play 4t4s 200 +population=4t4s population.run_dir="$out/4t4s" "$@"

python -m azr_population.cli compare stock="$out/stock.log" single="$out/single" 4t4s="$out/4t4s" \
    --out "$out/compare.html"
python -m azr_population.cli compare single="$out/single" 4t4s="$out/4t4s" --out "$out/population.html"
echo "run directories with report.html: $out/single $out/4t4s"
echo "members load in PEFT and vLLM: $here/load_member.py"
