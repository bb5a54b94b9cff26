"""The diagnostics by name, and how one of them is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable

from azr_population.registry import Registry
from azr_population.reports.diagnostics.kept import is_kept, kept_series, kept_steps
from azr_population.reports.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory

Diagnostic = Callable[[RunDirectory], dict[str, Series]]
"""run -> series by whom they are of: a role, a member, or `""` for whoever is comparable between a
single agent and a population: who proposes (measures of proposals) or who solves (of answers)."""

DIAGNOSTICS: Registry[Diagnostic] = Registry("diagnostic")


def series(run: RunDirectory, name: str, of: str = "") -> Series:
    """The diagnostic `name` of a run over its steps; empty where the run has nothing of it.

    `of` is a role (`teacher`, `student`, `agent`), a member's name, for `seconds` a phase, or
    empty: see `Diagnostic`.

    Raises:
        UserError: there is no such diagnostic; the message lists those there are.
    """
    diagnostic = DIAGNOSTICS.find(name)
    if is_kept(run):
        return kept_series(run, name, of)
    return list(diagnostic.function(run).get(of, []))


def last_step(run: RunDirectory) -> int:
    """The last recorded step, 0 without any."""
    if is_kept(run):
        return kept_steps(run)
    record = run.path / "metrics.jsonl"
    for line in reversed(record.read_bytes().splitlines() if record.is_file() else []):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # torn by a crash
    return 0
