"""The domains, by name: the `task.domain` of a run."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code_e.domain import CodeE
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.format import Format
from azr_population.domains.puzzles.domain import Puzzles
from azr_population.domains.task import ParsedProposal, Task
from azr_population.errors import UserError
from azr_population.referee import Referee
from azr_population.registry import Registry

DOMAINS: Registry[Callable[[], Domain]] = Registry("task.domain")
DOMAINS.register("code", "AZR: find the output, the input or the program")(Code)
DOMAINS.register("code_e", "AZR's four: those, and find the exception")(CodeE)
DOMAINS.register("puzzles", "find x for which sat(x) is True")(Puzzles)


@lru_cache(maxsize=64)
def find_domain(name: str) -> Domain:
    """The domain of that name, or the class at the path `module.Class`. Raises UserError."""
    domain = DOMAINS.find(name).function()
    if not isinstance(domain, Domain):
        raise UserError(
            f"task.domain={name} is not a domain; give a subclass of "
            "azr_population.domains.domain.Domain",
            key="task.domain",
        )
    return domain


class NotRun(Domain):
    """In the place of a domain whose code is not run: its tasks are shown as the text they are."""

    types: ClassVar[Mapping[str, str]] = {}
    formats: ClassVar[Registry[Callable[[], Format]]] = Registry("base.prompt_format")

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        raise UserError(_NOT_RUN, key="task.domain")

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        raise UserError(_NOT_RUN, key="task.domain")


_NOT_RUN = "task.domain is custom code and is not run; use azr-population --trust COMMAND"
