"""The diagnostics by name, and the function that reads one of a run."""

from __future__ import annotations

import json
from collections.abc import Callable

from azr_population.registry import Registry
from azr_population.runs.diagnostics.kept import is_kept, kept_series, kept_steps
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory

Diagnostic = Callable[[RunDirectory], dict[str, Series]]
"""Run -> series by role and member. `""` is the role that a single agent and a population have in
common: the proposers for measures of proposals, the solvers for measures of answers."""

DIAGNOSTICS: Registry[Diagnostic] = Registry("diagnostic")


def series(run: RunDirectory, name: str, of: str = "") -> Series:
    """The diagnostic `name` of a run over its steps; empty if the run has not recorded it.

    `of` is a role (`teacher`, `student`, `agent`), a member's name, for `seconds` a phase, or
    empty: see `Diagnostic`.

    Raises:
        UserError: there is no such diagnostic; the message lists them all.
    """
    diagnostic = DIAGNOSTICS.find(name)
    if is_kept(run):
        return kept_series(run, name, of)
    return list(diagnostic.function(run).get(of, []))


def last_step(run: RunDirectory) -> int:
    """The last recorded step; 0 if there is none."""
    if is_kept(run):
        return kept_steps(run)
    record = run.path / "metrics.jsonl"
    for line in reversed(record.read_bytes().splitlines() if record.is_file() else []):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # torn by a crash
    return 0
