#!/usr/bin/env bash
# Adds Ray and veRL to the environment of scripts/env.sh (LINE=pins or current). The newest veRL asks
# for older transformers and tensordict than it works with, so its requirements go without them.
set -euo pipefail
. "$(dirname "$0")/env.sh"
pip install --constraint "$constraints" --no-deps verl
"$venv/bin/python" -c 'from importlib.metadata import requires; print(*requires("verl"), sep="\n")' |
    grep -vE 'extra ==|^(torch|transformers|tensordict)\b' >"$venv/verl.txt"
pip install --constraint "$constraints" --requirement "$venv/verl.txt" tensordict "ray[default]" \
    "setuptools<81" cachetools fastapi orjson uvicorn
