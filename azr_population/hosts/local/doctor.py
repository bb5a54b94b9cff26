"""`azr-population doctor`: what this machine has, and what works on it."""

import importlib.util
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from rich.console import Console
from rich.table import Table

from azr_population.bases.nano import nano_base_path
from azr_population.errors import UserError
from azr_population.referee import confinement
from azr_population.versions import AZR_WANDB, installed, wandb_fault


def doctor() -> int:
    """Prints the table; 0 when a local run works here, 1 when it does not."""
    import torch

    from azr_population.engines.base_model import fast_cpu_dtype

    azr, gpu = azr_home(), torch.cuda.is_available()
    fast = gpu or fast_cpu_dtype() == torch.bfloat16
    threads = f"{torch.get_num_threads()} of {len(os.sched_getaffinity(0))} cores"
    layers = {layer.name: layer for layer in confinement()}
    packages = ("transformers", "peft", "hydra-core", "trueskill", "verl", "ray", "vllm")
    rows = [
        ("python", platform.python_version(), platform.platform()),
        ("torch", torch.__version__, torch.cuda.get_device_name(0) if gpu else "no GPU"),
        ("bfloat16", "fast" if fast else "slow", "" if fast else "use base.dtype=float32"),
        ("threads", threads, f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}"),
        *((package, installed(package) or "not installed", "") for package in packages),
        ("AZR", str(azr) if azr else "not found", "" if azr else "set AZR_HOME"),
        *((f"sandbox: {n}", "yes" if x.available else "no", x.detail) for n, x in layers.items()),
    ]
    console, table = Console(), Table(title="what this machine has", title_justify="left")
    for column in ("part", "found", "note"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)

    there = {
        "seccomp": layers["seccomp"].available,
        "the nano base": (nano_base_path() / "model.safetensors").is_file(),
        "AZR_HOME": azr is not None,
        "verl": installed("verl") is not None,
        "veRL 0.4.1": installed("verl") == "0.4.1",
        "ray": installed("ray") is not None,
        "a GPU": gpu,
    }
    uses = {
        "local runs: azr-population train": ("seccomp", "the nano base"),
        "runs inside AZR: azr-population azr +population=4t4s": ("AZR_HOME", "verl", "ray"),
        "stock AZR, to compare with: azr-population azr": ("AZR_HOME", "veRL 0.4.1", "ray"),
        "7B bases: base=hf engine=torch_cuda": ("a GPU",),
    }
    for use, needs in uses.items():
        missing = ", ".join(part for part in needs if not there[part])
        console.print(f"no     {use} (needs {missing})" if missing else f"works  {use}")
    return 0 if there["seccomp"] and there["the nano base"] else 1


def doctor_azr() -> int:
    """Prints the packages that AZR imports and this environment lacks; 0 if it lacks none.
    Raises UserError: this package is imported from a checkout and not installed."""
    try:
        needs = [need for need in requires("azr-population") or () if "extra ==" in need]
    except PackageNotFoundError as error:
        checkout = Path(__file__).parents[3]
        raise UserError(
            f"azr-population is not installed here: pip install '{checkout}[azr,verl]'"
        ) from error
    names = {
        re.split(r"[\s;<>=!\[]", need)[0]: need.partition(";")[0].strip()
        for need in needs
        if re.search(r"extra == .(azr|verl).", need)
    }
    absent = [f"'{need}'" for name, need in names.items() if installed(name) is None]
    if absent:
        print(f"missing: pip install {' '.join(absent)}")
    no_wandb = f"AZR's scripts log to wandb: pip install {AZR_WANDB}"
    logger = no_wandb if installed("wandb") is None else wandb_fault()
    if logger:
        print(f"{logger}, or set trainer.logger=[console]")
    if home := azr_home():
        print(f"AZR: {home}")
    else:
        print("missing: AZR's checkout; AZR_HOME=FOLDER says where it is")
    return 1 if absent or logger or not home else 0


def azr_home() -> Path | None:
    """The AZR checkout: `AZR_HOME`, or where `absolute_zero_reasoner` is importable from."""
    named = os.environ.get("AZR_HOME")
    if named:
        path = Path(named)
        return path if (path / "absolute_zero_reasoner").is_dir() else None
    spec = importlib.util.find_spec("absolute_zero_reasoner")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return Path(folders[0]).parent if folders else None
