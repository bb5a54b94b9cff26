"""Stock AZR as `azr_ab.sh` and `azr_cpu.sh` play it. With this folder on PYTHONPATH every Python
process, Ray's workers included, reads this file when it starts.

AZR's first checkpoint raises under the veRL that it pins, because its training loader has no state;
here it has an empty one (`patches/azr_fixes.py`). With AZR_CPU=1 veRL 0.4.1's own FSDP
worker and vLLM 0.8.5's rollout also run without a GPU: what they take for granted on one is set
when they are imported. No file of theirs is touched. Beside it the CPU needs overrides
(`azr_cpu.sh`) and a Ray that believes in a GPU (`RAY_OVERRIDE_RESOURCES`).
"""

import os
import sys
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder


def on_trainer(module):
    """`absolute_zero_reasoner.trainer.ppo.reason_rl_ray_trainer`: checkpoints can be written."""
    from azr_population.patches import apply
    from azr_population.patches.azr_fixes import DATALOADER_STATE

    apply([DATALOADER_STATE])


def on_device(module):
    """`verl.utils.device`: what `torch.cpu` lacks of `torch.cuda`, with figures of 0."""
    import torch

    class Cpu:
        get_rng_state = staticmethod(torch.get_rng_state)
        set_rng_state = staticmethod(torch.set_rng_state)
        manual_seed = staticmethod(torch.manual_seed)
        is_available = staticmethod(lambda: True)
        get_device_name = staticmethod(lambda *_: "CPU")
        empty_cache = staticmethod(lambda: None)
        mem_get_info = staticmethod(lambda: (0, 0))

        def __getattr__(self, name):
            if name.startswith(("memory_", "max_memory_")):
                return lambda *_: 0
            return getattr(torch.cpu, name)

    device = Cpu()
    module.get_torch_device = lambda: device
    module.get_device_id = lambda: torch.device("cpu")
    module.get_nccl_backend = lambda: "gloo"
    start = torch.distributed.init_process_group
    # veRL asks for a backend for the CPU and one for the device, and here these are the same.
    torch.distributed.init_process_group = wraps(start)(
        lambda *words, **options: start(*words, **{**options, "backend": "gloo"})
    )


def on_timing(module):
    """`verl.utils.debug.performance`: gloo has no mean, and there is one process."""
    module.reduce_timing = lambda timing: timing


def on_worker(module):
    """`verl.workers.fsdp_workers`: modules are sent to other ranks from a GPU only."""
    shard = module.FSDP
    module.FSDP = wraps(shard)(
        lambda *words, **options: shard(*words, **{**options, "sync_module_states": False})
    )


def on_vllm(module):
    """`vllm.entrypoints.llm`: no sleep mode and no cached prefixes on a CPU."""

    class AwakeLLM(module.LLM):
        def __init__(self, *words, **options):
            fixed = {"enable_sleep_mode": False, "enable_prefix_caching": False}
            super().__init__(*words, **{**options, **fixed})

        def sleep(self, level=1):
            """Stays awake."""

        def wake_up(self, tags=None):
            """Is awake."""

    module.LLM = AwakeLLM


CHANGED = {"absolute_zero_reasoner.trainer.ppo.reason_rl_ray_trainer": on_trainer}
if os.environ.get("AZR_CPU") == "1":
    CHANGED |= {
        "verl.utils.device": on_device,
        "verl.utils.debug.performance": on_timing,
        "verl.workers.fsdp_workers": on_worker,
        "vllm.entrypoints.llm": on_vllm,
    }


class Importer(MetaPathFinder):
    """Changes a module right after its import."""

    def find_spec(self, name, path=None, target=None):
        if name not in CHANGED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                CHANGED[name](module)

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Importer())
