#!/usr/bin/env bash
# Adds Ray, veRL and what AZR imports (the extras verl and azr) to the environment of scripts/env.sh
# (LINE=pins or current). The newest veRL asks for older transformers and tensordict than it works with,
# so its requirements go without them.
set -euo pipefail
. "$(dirname "$0")/env.sh"
pip install --constraint "$constraints" --no-deps verl
requirements() {
    "$venv/bin/python" -c 'import sys; from importlib.metadata import requires as r; print(*r(sys.argv[1]), sep="\n")' "$1"
}
{
    requirements verl | grep -vE 'extra ==|^(torch|transformers|tensordict)\b'
    requirements azr-population | sed -nE 's/; extra == "(verl|azr)"$//p' | grep -v '^verl\b'
} >"$venv/verl.txt"
pip install --constraint "$constraints" --requirement "$venv/verl.txt"
