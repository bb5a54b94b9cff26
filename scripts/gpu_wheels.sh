#!/usr/bin/env bash
# Wheels for perf/gpu.py on a machine without a network that has Python 3.12 (Linux, x86-64), torch,
# transformers, peft, accelerate and what those need, numpy, scipy, pandas, statsmodels and jinja2:
#     bash scripts/gpu_wheels.sh [FOLDER=.whl]
# There: python3 -m pip install --no-index --no-deps --target SITE FOLDER/*.whl
# bitsandbytes keeps its kernels for CUDA 13.0 only, and vl-convert, which draws the pages' charts, is
# left out: 35 and 80 MB that are not needed there.
set -euo pipefail
folder=${1:-.whl} python=${PYTHON:-python3}
rm -rf "$folder" && mkdir -p "$folder"
# Bounds are those of hydra-core and radon: nothing is resolved without dependencies.
packages=(hydra-core==1.3.* "omegaconf>=2.3,<2.4" "radon>=6" "mando<0.8" colorama "pydantic==2.14.3"
    pydantic-core==2.50.4 annotated-types typing-inspection typing-extensions click rich rich-click
    altair narwhals jsonschema jsonschema-specifications referencing rpds-py attrs markdown-it-py mdurl six
    pygments markupsafe pytest iniconfig pluggy pytest-timeout packaging bitsandbytes populora==0.4.5
    einx==0.4.0 frozendict einops torch-einops-utils mean-conc-beta env-ssl-wrapper)
for package in "${packages[@]}"; do
    "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 \
        --implementation cp --abi cp312 --abi abi3 --abi none --platform manylinux_2_28_x86_64 \
        --platform manylinux_2_27_x86_64 --platform manylinux_2_24_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$folder" "$package"
done
# Two are on the index as sources only.
"$python" -m pip wheel -q --no-deps -w "$folder" antlr4-python3-runtime==4.9.3 "trueskill>=0.4.5"
"$python" - "$folder" <<'PYTHON'
import sys
import zipfile
from pathlib import Path

(whole,) = Path(sys.argv[1]).glob("bitsandbytes-*.whl")
cut = whole.with_suffix(".cut")
with zipfile.ZipFile(whole) as old, zipfile.ZipFile(cut, "w", zipfile.ZIP_DEFLATED) as new:
    kernels = {name for name in old.namelist() if name.endswith(".so")}
    left_out = {name for name in kernels if not name.endswith(("_cuda130.so", "_cpu.so"))}
    for name in old.namelist():
        text = old.read(name)
        if name.endswith(".dist-info/RECORD"):
            lines = text.decode().splitlines(keepends=True)
            text = "".join(x for x in lines if x.split(",")[0] not in left_out).encode()
        if name not in left_out:
            new.writestr(name, text)
cut.replace(whole)
PYTHON
du -sh "$folder"
