"""What AZR needs under today's veRL and transformers: stand-ins for the modules of veRL 0.4.1 that
it imports and later versions no longer have, and a filter of prompts that counts tokens.

They are found only where nothing else is: under veRL 0.4.1 nothing changes. AZR imports them by
name and calls none but the two string functions, because a population brings its own workers.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from azr_population.errors import UserError

from .azr_fixes import DATASET, PROMPT_FILTER
from .mechanism import apply, digest

WORKERS = "verl.workers.fsdp_workers"
"""Where stock AZR's actor, rollout and critic are; a veRL without it cannot run stock AZR."""


@dataclass(frozen=True)
class Shim:
    """A stand-in for one module."""

    names: tuple[str, ...]
    """Names that AZR imports from the module."""
    digest: str
    """Of the sources of these names in veRL 0.4.1, which they stand for (`mechanism.digest`)."""
    make: Callable[["Shim"], dict[str, Any]]
    """Makes the objects by name."""


def _from_math_reward(shim: Shim) -> dict[str, Any]:
    """veRL 0.9.1 has renamed the module; the two functions have the same source."""
    renamed = "verl.utils.reward_score.math_reward"
    if digest(renamed, shim.names) != shim.digest:
        raise UserError(
            f"{', '.join(shim.names)} of {renamed} are not veRL 0.4.1's; use veRL 0.9.1"
        )
    module = importlib.import_module(renamed)
    return {name: getattr(module, name) for name in shim.names}


def _not_called(shim: Shim) -> dict[str, Any]:
    """Classes that AZR wraps for Ray, and a function that it calls for LoRA of veRL's own."""

    class Gone:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise UserError("this veRL no longer has the workers of stock AZR; use veRL 0.4.1")

    return {name: type(name, (Gone,), {}) for name in shim.names}


SHIMS = {
    "verl.utils.reward_score.math": Shim(
        ("remove_boxed", "last_boxed_only_string"), "a43dcd81e7196b1a", _from_math_reward
    ),
    "verl.utils.vllm_utils": Shim(("is_version_ge",), "98f893badd40b44d", _not_called),
    WORKERS: Shim(
        (
            "ActorRolloutRefWorker",
            "AsyncActorRolloutRefWorker",
            "CriticWorker",
            "RewardModelWorker",
        ),
        "18886a876ecb60f2",
        _not_called,
    ),
}
"""By module. The two of Megatron are not among them: AZR's branch for it ends in an error of its
own before it imports them."""


class _Finder(MetaPathFinder, Loader):
    """The last to be asked for a module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of a module that has a stand-in."""
        return ModuleSpec(name, self, origin="azr_population") if name in SHIMS else None

    def exec_module(self, module: ModuleType) -> None:
        """Fills the module."""
        shim = SHIMS[module.__name__]
        vars(module).update(shim.make(shim))


class _Patcher(MetaPathFinder):
    """Patches AZR's dataset of prompts right after its import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """AZR's own, whose loader applies the patch."""
        spec = PathFinder.find_spec(name, path, target) if name == DATASET else None
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                apply([PROMPT_FILTER])

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Has the stand-ins and the filter in this process. Raises UserError: AZR's dataset is imported
    and is not the expected one."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path[:] = [_Patcher(), *sys.meta_path, _Finder()]
    if DATASET in sys.modules:
        apply([PROMPT_FILTER])
