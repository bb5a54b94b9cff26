"""Words for records: why a proposal is invalid or an answer wrong, a completion's figures."""

from collections.abc import Mapping
from typing import Any

from azr_population.runs.records import show

MEANINGS = {
    "ok": "it runs and passes the rules",
    "solved": "the answer is right",
    "wrong": "an answer was read, and is not right",
    "unparsable": "not in the form that was asked for",
    "invalid": "AZR's executor refused it",
    "held_out": "a program of the eval",
    "internal_error": "the trainer failed to read it: our fault, see the log",
    "boolean": "the answer is True, False or None, which a coin flip finds",
    "constant": "the answer does not depend on the input",
    "identity": "the answer is written in the input",
    "no_chain": "not a chain of statements as the nano base's programs are",
    "program_too_long": "over task.max_program_chars",
    "output_too_long": "over task.max_output_chars",
    "too_few_inputs": "fewer than four different inputs",
    "syntax_error": "the program does not compile",
    "no_function": "the program defines no f",
    "banned": "a module or a name that is not allowed",
    "bad_input": "the input is not the argument list of one call",
    "error": "the program raised an exception",
    "timeout": "the program did not end in time",
    "memory": "the program asked for too much memory",
    "too_large": "an output or an answer is over a bound",
    "not_finite": "a number is infinite or NaN",
    "not_literal": "an output or an answer is not a Python literal",
    "nondeterministic": "two runs on one input gave different outputs",
    "forbidden": "a system call that it may not make",
    "crashed": "the program ended its process",
    "tampered": "what came back is not what the referee writes",
    "lost": "the referee's worker died; says nothing about the program",
    "malformed": "the question itself could not be read",
}
"""Reasons of the referee, of the validity rules and of the hosts."""
INTERNAL_ERROR = "internal_error"
"""The reason of a proposal that our code failed to read; the fault is logged."""
UNJUDGED = (INTERNAL_ERROR, "lost")
"""Reasons that say nothing about a proposal. Nobody is paid or rated by one with such a reason."""
_FIGURES = (
    ("solve_rate", "solved by {} of the attempts", "{:.0%}"),
    ("reward", "reward {}", "{:+.2f}"),
    ("advantage", "advantage {}", "{:+.2f}"),
    ("tokens", "{} tokens", "{:.0f}"),
    ("log_prob", "log-probability {} a token", "{:.2f}"),
)
"""Key, words, format."""


def meaning(reason: str, finished: object = True) -> str:
    """The meaning of a reason; empty for an unknown one. `finished` is False if the token limit cut
    the completion off, which explains its form."""
    text = MEANINGS.get(reason, "")
    return f"{text} (cut off by the limit of tokens)" if text and finished is False else text


def verdict_words(verdict: str, reason: str) -> str:
    """`refused, too few inputs`; the verdict alone if the reason adds nothing (`valid`, `ok`)."""
    return verdict if reason in (verdict, "ok") else f"{verdict}, {reason.replace('_', ' ')}"


def figures_of(row: Mapping[str, Any]) -> str:
    """`reward +0.50, 12 tokens, log-probability -0.10 a token`, as far as recorded."""
    return ", ".join(
        words.format(show(row[key], form))
        for key, words, form in _FIGURES
        if row.get(key) is not None
    )
