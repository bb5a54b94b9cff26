"""What lets stock AZR run on a CPU; the run itself is `examples/azr_ab.sh`, by hand."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import needs
import pytest

FOLDER = Path(__file__).parents[3] / "examples" / "azr_stock"

ASKED = """
import torch
from verl.utils import device
from verl.utils.debug.performance import log_gpu_memory_usage, reduce_timing
from verl.utils.flops_counter import get_device_flops

assert device.get_device_id() == torch.device("cpu") and device.get_nccl_backend() == "gloo"
assert device.get_torch_device().max_memory_allocated() == 0
assert get_device_flops() > 0
state = device.get_torch_device().get_rng_state()
first = torch.rand(1)
device.get_torch_device().set_rng_state(state)
assert torch.equal(torch.rand(1), first)
log_gpu_memory_usage("at the start")
torch.distributed.init_process_group(
    backend="cpu:gloo,cpu:gloo", rank=0, world_size=1, store=torch.distributed.HashStore()
)
assert torch.distributed.get_backend() == "gloo"
assert reduce_timing({"update": 2.5}) == {"update": 2.5}
"""


def run(code, **variables):
    """In a process that finds `examples/azr_stock` first, as the script's do."""
    variables |= {"PYTHONPATH": str(FOLDER), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_verl_takes_the_cpu_for_its_device():
    needs.verl()
    if not version("verl").startswith("0.4."):
        pytest.skip("stock AZR plays on the veRL that it pins, 0.4.1, and this is another one")
    run(ASKED, AZR_CPU="1")


def test_without_azr_the_patch_is_refused_by_what_it_replaces():
    code = (
        "import sitecustomize\n"
        "from azr_population.errors import UserError\n"
        "try:\n    sitecustomize.on_trainer(None)\n"
        "except UserError as error:\n    assert 'azr-dataloader-state' in str(error), error\n"
        "else:\n    raise AssertionError('it is not refused')\n"
    )
    run(code)
