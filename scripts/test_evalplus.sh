#!/usr/bin/env bash
# The tests that compare with evalplus, in an environment of their own (.venv-evalplus): its protobuf
# is one that TensorBoard does not take. No torch in it. Arguments go to pytest; with
# BENCHMARK_DATA=DIR, `-m "slow or not slow"` judges the canonical solutions and mutants of MBPP+ too.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-evalplus
if ! [ -f "$venv/installed" ]; then
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --constraint constraints/pins.txt \
        evalplus math-verify pebble pytest pytest-timeout hydra-core rich safetensors scipy trueskill
    touch "$venv/installed"
fi
tests=(tests/measuring/evaluation/test_{data,extraction,figures,functions,contests,mathematics,proofs}.py)
OMP_NUM_THREADS=1 exec "$venv/bin/python" -m pytest "${tests[@]}" "$@"
