"""The long tail: constructs that the base sees seldom, on top of the grammar that it knows well.

As in real code, frequencies fall with the rank, and programs are more frequent than their values:
the tail has a larger share of the proposed programs than of the solved ones. So a teacher writes
such programs, a student solves some of them, and training has something to teach. No document has
two of the constructs; their compositions are for the eval.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from azr_population.domains.code.generator.expressions import ARGUMENTS, LETTERS, LIST, STR, Scope
from azr_population.domains.code.generator.grammar import Grammar, Written, reads

SHARES = {"propose": 0.5, "solve": 0.12}
"""Chance of a tail construct in a document, by phase. Such a document is drawn until one is
accepted, while a rejected core program is replaced by a new draw of everything: so the tail's share
of the documents is larger (see the base's card)."""
_EXPONENTS = {"propose": 0.3, "solve": 0.8}
"""A construct of rank r has weight r ** -exponent: values are rarer than programs."""


class Construct(NamedTuple):
    """An expression of type `gives` over a name {x} of type `takes`; {c} stands for a letter."""

    takes: str
    gives: str
    text: str


CONSTRUCTS: tuple[Construct, ...] = (
    Construct(STR, STR, "''.join(c * 2 for c in {x})"),
    Construct(STR, STR, "{x}[::3]"),
    Construct(STR, STR, "{x}[1:3]"),
    Construct(STR, STR, "{x}[-1:] + {x}[:-1]"),
    Construct(LIST, LIST, "{x}[-2:]"),
    Construct(STR, STR, "{x}[1::2]"),
    Construct(LIST, LIST, "{x}[1:3]"),
    Construct(STR, STR, "{x}[1:-1]"),
    Construct(LIST, LIST, "{x}[1:-1]"),
    Construct(LIST, LIST, "{x}[::3]"),
    Construct(LIST, LIST, "{x}[1::2]"),
    Construct(STR, STR, "{x} * 3"),
)
"""From the most to the least frequent. Those that take more training come first, so that a student
solves one in five to one in two of most of them at the start, by greedy decoding. Constructs that a
student did not learn in 100 steps were left out."""

_USES = {
    LIST: ("{t}", "{t} + [{k}]", "[{k}] + {t}", "{t} + [len({x})]", "[{x}[0]] + {t}"),
    STR: ("{t}", "{t} + {c}", "{c} + {t}", "{t} + str(len({x}))", "{x}[0] + {t}"),
}
"""How a return uses the construct's value: hardly, so that the construct is the task."""
_AFTER = {
    LIST: ("{x}[::-1]", "{x}[0]", "{x}[-1]", "len({x})", "{x} + [{k}]", "{x}[1:]", "{x}[:2]"),
    STR: ("{x}[::-1]", "{x} + {c}", "{c} + {x}", "{x}.upper()", "{x}[0]", "{x}[1:]", "{x}[:2]"),
}
"""A return after it."""

BANDS = {"tail, seldom": slice(0, 4), "tail, rare": slice(4, 8), "tail, rarest": slice(8, 12)}
"""Ranks by frequency, as the eval groups them."""


def draw_construct(phase: str, rng: Random) -> Construct:
    """A construct, by its frequency in documents of this phase."""
    weights = [(rank + 1) ** -_EXPONENTS[phase] for rank in range(len(CONSTRUCTS))]
    return rng.choices(CONSTRUCTS, weights)[0]


def draw_composition(rng: Random) -> tuple[Construct, Construct]:
    """Two constructs of which the second takes the value of the first, uniformly."""
    first = rng.choice(CONSTRUCTS)
    following = [other for other in CONSTRUCTS if other.takes == first.gives and other != first]
    return first, rng.choice(following)


class TailGrammar(Grammar):
    """Programs around tail constructs: alone, after a statement of the core, or before a use."""

    def tail_program(self, constructs: Sequence[Construct], simple: bool = False) -> Written:
        """A program with these constructs, one applied to the other's value.

        `simple` programs have no statement of the core.
        """
        while True:
            written = self._draw_tail(constructs, simple)
            if written is not None:
                return written

    def _draw_tail(self, constructs: Sequence[Construct], simple: bool) -> Written | None:
        rng = self.rng
        form = "alone" if simple else rng.choices(("alone", "before", "after"), (5, 2, 3))[0]
        kind = constructs[0].takes
        name = rng.choice(ARGUMENTS[kind][:2])
        scope = Scope({name: kind}, [name])
        lines: list[str] = []
        if form == "before":
            write = rng.choice((self._assign, self._change, self._method))
            lines += write(scope, 1, False)
        text = target = ""
        for number, construct in enumerate(constructs):
            argument = self._name(construct.takes, scope)
            if argument is None:
                return None
            target, text = argument, self._fill(construct.text, argument)
            if number < len(constructs) - 1 or form == "after":
                local = self._new(scope, construct.gives)
                lines.append(f"{local} = {text}")
        gives = constructs[-1].gives
        if form == "after":
            text = self._fill(rng.choice(_AFTER[gives]), self._name(gives, scope) or target)
        elif form == "alone" and rng.random() < 0.7:
            text = self._fill(rng.choice(_USES[gives]), target, text)
        body = "\n".join("    " + line for line in [*lines, f"return {text}"])
        if any(not reads(body, name) for name in scope.types):
            return None
        return Written(f"def f({name}):\n{body}", (kind,))

    def _fill(self, form: str, name: str, text: str = "") -> str:
        rng = self.rng
        return form.format(x=name, t=text, k=rng.randint(0, 9), c=repr(rng.choice(LETTERS)))
