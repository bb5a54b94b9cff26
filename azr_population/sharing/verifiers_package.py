"""A run's tasks as an installable taskset of `verifiers` (v1), and self-play that starts from them.

The package that is written holds the tasks and a few lines of code; prompts, parsing and the judge
are those of this package (`verifiers_taskset.py`, `verifiers_environment.py`).
"""

import keyword
import re
import sys
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.sharing.tasks import write_tasks

_PROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
description = "Tasks of a self-play run, judged by azr-population's referee."
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4", "azr-population"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{module}", "{module}_self_play"]
"""
_MODULE = """\
\"\"\"Tasks of a self-play run; `tasks.jsonl` beside this file holds them.\"\"\"

from pathlib import Path

from azr_population.sharing.verifiers_taskset import SelfPlayTaskset


class {title}Taskset(SelfPlayTaskset):
    FILE = Path(__file__).with_name("tasks.jsonl")


__all__ = ["{title}Taskset"]
"""
_ENVIRONMENT = """\
\"\"\"A proposer's and a solver's seat: `vf-eval {module} --env.id {module}_self_play`.\"\"\"

from azr_population.sharing.verifiers_environment import SelfPlayEnv

__all__ = ["SelfPlayEnv"]
"""


def module_name(name: str) -> str:
    """The package that a folder of this name makes. Raises UserError: it could not be imported."""
    module = re.sub(r"[-. ]+", "_", name).lower()
    if not re.fullmatch(r"[a-z]\w*", module, re.ASCII) or keyword.iskeyword(module):
        raise UserError(f"--out {name}: a package needs a name of letters, digits and _")
    if module in sys.stdlib_module_names:
        raise UserError(f"--out {name}: {module} is a module of Python's own; take another name")
    return module


def write_package(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    """Fills an empty folder with the package of these tasks (`distinct_tasks`); returns its module,
    which is the taskset's id. Raises UserError: `name` makes no name of a module."""
    module = module_name(name)
    title = "".join(part.title() for part in module.split("_"))
    modules = {module: _MODULE, f"{module}_self_play": _ENVIRONMENT}
    for path, code in modules.items():
        (folder / path).mkdir()
        text = code.format(title=title, module=module)
        (folder / path / "__init__.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        _PROJECT.format(name=module.replace("_", "-"), module=module), encoding="utf-8"
    )
    write_tasks(folder / module / "tasks.jsonl", rows)
    return module
