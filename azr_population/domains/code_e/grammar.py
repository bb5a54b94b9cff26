"""An endless supply of small programs that may raise, for evals and warm-ups.

They are ours and run in this process; the referee runs what a model writes.
"""

from random import Random
from typing import Any

from azr_population.domains.code.task_types import CODE_E
from azr_population.domains.code_e.named_error import NO_ERROR, naming
from azr_population.domains.task import Task

_EXPRESSIONS = {
    "i": (
        *("{i} // ({i} - {c})", "{j} // {i}", "{j} % len({l})", "{i} // len({s})"),
        *("{i} + {c}", "{i} * {c}", "{i} - {j}", "{j} // ({i} - {c})", "{j} % ({i} - {c})"),
        *("len({l})", "sum({l})", "{l}[{i}]", "{l}[{c}]", "{l}.index({i})", "max({l})"),
        *("{l}.pop()", "int({s})", "len({s})", "{s}.index('{k}')", "{d}['{k}']", "{d}[{s}]"),
        *("{i} + {s}", "len({i})", "sum({s})", "ord({s})", "min({l}) // len({s})"),
    ),
    "l": (
        *("{l} + [{i}]", "{l}[{c}:]", "{l}[::-1]", "sorted({l})", "[v + {c} for v in {l}]"),
        *("[{j} // v for v in {l}]", "{l} * {i}", "list({i})", "{l} + {s}", "{l}.sort()"),
        *("[{d}[v] for v in {s}]", "[int(v) for v in {s}]"),
    ),
    "s": (
        *("{s} + '{k}'", "{s}[{i}]", "{s}[{c}]", "{s}.upper()", "str({i})", "{s} * {i}"),
        *("{s} + {i}", "{l}.upper()", "{s}.append('{k}')", "'{k}'.join({l})", "{s}[::-1]"),
        "chr({i})",
    ),
}
_GUARDS = (
    "assert {i} > {c}",
    "assert {l}",
    "if {i} > {c}:\n        raise ValueError('{k}')",
    "if len({s}) < {c}:\n        raise KeyError('{k}')",
    "for v in {l}:\n        {i} = {j} % v",
    "{d}['{k}'] = {i}",
    "del {d}['{k}']",
    "{l}.remove({c})",
)


def make(rng: Random) -> Task | None:
    """A task, or None if the draw is rejected."""
    kinds = rng.choice(("l i", "s i", "l", "s", "i j", "l s", "d s", "d i", "i"))
    names = {kind: name for kind, name in zip(kinds.split(), "abc", strict=False)}
    parameters = list(names.items())
    body, free = [], iter("xyz")
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        if rng.random() < 0.3:
            line = _filled(rng, rng.choice(_GUARDS), names)
        else:
            kind = rng.choice("ils")
            line = _filled(rng, rng.choice(_EXPRESSIONS[kind]), names)
            if line is not None:
                name = next(free)
                line, names = f"{name} = {line}", {**names, kind: name}
        if line is None:
            return None
        body.append(line)
    kind = rng.choice("ils")
    value = _filled(rng, rng.choice(_EXPRESSIONS[kind]), names)
    if value is None:
        return None
    head = f"def f({', '.join(name for _, name in parameters)}):"
    program = "\n    ".join([head, *body, f"return {value}"])
    arguments = ", ".join(_value(rng, kind) for kind, _ in parameters)
    space: dict[str, Any] = {}
    exec(naming(program), space)  # of our own grammar
    outcome = str(eval(f"f({arguments})", space))
    if outcome == NO_ERROR and rng.random() > 0.6:
        return None
    if outcome == "TypeError" and rng.random() > 0.4:  # the commonest by far
        return None
    return Task(CODE_E, program, (arguments,), (outcome,))


def _filled(rng: Random, template: str, names: dict[str, str]) -> str | None:
    """The template with variables in scope and constants; None where a kind is not in scope."""
    fill = {**names, "c": str(rng.randint(0, 5)), "k": rng.choice("abc")}
    fill.setdefault("j", str(rng.randint(6, 20)))
    try:
        return template.format(**fill)
    except KeyError:
        return None


def _value(rng: Random, kind: str) -> str:
    if kind in "ij":
        return str(rng.randint(-2, 7))
    if kind == "l":
        return str([rng.randint(0, 6) for _ in range(rng.randint(0, 4))])
    if kind == "s":
        return repr("".join(rng.choice("abc12") for _ in range(rng.randint(0, 4))))
    return repr({rng.choice("abc"): rng.randint(0, 6) for _ in range(rng.randint(0, 2))})
