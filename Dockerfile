# AZR at its pins with CUDA 12.4, its checkout in /opt/azr, and this package.
#   docker build -t azr-population . && docker run --gpus all -it azr-population
# Ubuntu 22.04 has AZR's Python, 3.10. Without a GPU: bash scripts/azr_pins.sh FOLDER.
FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04@sha256:622e78a1d02c0f90ed900e3985d6c975d8e2dc9ee5e61643aed587dcf9129f42

ARG AZR_COMMIT=a82124e
ENV DEBIAN_FRONTEND=noninteractive PIP_NO_CACHE_DIR=1 PATH=/opt/venv/bin:$PATH

RUN apt-get update && apt-get install --yes --no-install-recommends \
        build-essential git python3 python3-dev python3-venv && rm -rf /var/lib/apt/lists/*
COPY constraints/pins.txt /opt/constraints.txt
RUN python3 -m venv /opt/venv && python -m pip install -c /opt/constraints.txt --upgrade pip setuptools wheel
RUN git clone https://github.com/LeapLabTHU/Absolute-Zero-Reasoner /opt/azr && git -C /opt/azr checkout "$AZR_COMMIT"

# The pins of AZR's conda environment. They are a whole freeze, so nothing is resolved anew; flash-attn
# is built against the torch among them.
RUN sed -n '/- pip:/,$s/^ *- \([^ #]*==[^ ]*\).*/\1/p' /opt/azr/azr_env.yml >/opt/pins.txt && \
    python -m pip install --no-deps -r /opt/pins.txt
RUN python -m pip install --no-build-isolation -r /opt/azr/flashattn_requirements.txt

# Floors in pyproject.toml are what AZR has, so nothing of it moves: the pins are the constraint.
COPY . /opt/azr_population
RUN python -m pip install --constraint /opt/pins.txt /opt/azr_population

ENV AZR_HOME=/opt/azr PYTHONPATH=/opt/azr
WORKDIR /opt/azr
RUN azr-population doctor
# AZR writes into its checkout.
RUN useradd --create-home azr && chown --recursive azr /opt/azr
USER azr
CMD ["bash"]
