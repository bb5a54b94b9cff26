#!/usr/bin/env bash
# The same recipe on Qwen2.5-Coder-7B and AZR's seed tasks, on one GPU:
#   bash recipes/fig6_children/run_7b.sh BASE_FOLDER AZR_CHECKOUT OUT_FOLDER
# Stopped and started again, it goes on. Several GPUs: one process each, with other --seeds.
set -euo pipefail
cd "$(dirname "$0")"
python retention.py --base "$1" --seed-file "$2/data/7b_coder_seed_io.jsonl" --out "$3" \
    --device cuda --dtype bfloat16 --rank 32 --learning-rate 1e-5 --parent-steps 40 --steps 20 \
    --tasks 32 --samples 8 --baseline rloo --micro-batch-tokens 16384 --seeds 1 2 3 4 5
python figure.py "$3"
