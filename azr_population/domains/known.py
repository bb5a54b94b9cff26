"""The domains, by name: the `task.domain` of a run."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

from azr_population.domains.code.domain import Code
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.errors import UserError
from azr_population.registry import Registry, own_code

DOMAINS: Registry[Callable[[], Domain]] = Registry("task.domain", group="domains")
DOMAINS.register("code", "AZR: find the output, the input or the program")(Code)


_OF_TEXTS = ("judge", "grade", "measure", "fingerprint")
"""Methods of a user's domain that read what a model wrote: an exception of theirs makes one problem
unjudged (`unjudged_if_unreadable`) and ends nothing."""
_OF_TASKS = ("answer", "eval_tasks")


@lru_cache(maxsize=64)
def find_domain(name: str) -> Domain:
    """The domain of that name, or the class at the path `module.Class`. Raises UserError."""
    kind = DOMAINS.find(name)
    if name in DOMAINS:
        return kind()
    with own_code("task.domain", name):
        domain = kind()
    if not isinstance(domain, Domain):
        raise UserError(
            f"task.domain={name} is not a domain; give a subclass of "
            "azr_population.domains.domain.Domain",
            key="task.domain",
        )
    for method in (*_OF_TEXTS, *_OF_TASKS):
        contained = DOMAINS.contained(name, getattr(domain, method), raises=method in _OF_TEXTS)
        object.__setattr__(domain, method, contained)  # the class may be a frozen dataclass
    return domain


class UntrustedDomain(Domain):
    """In the place of a domain whose code is not run: its tasks are shown as the text they are."""

    types: ClassVar[Mapping[str, str]] = {}
    formats: ClassVar[Registry[Callable[[], Format]]] = Registry("base.prompt_format")

    def judge(self, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            "task.domain is custom code and is not run; use azr-population --trust COMMAND",
            key="task.domain",
        )

    grade = judge
