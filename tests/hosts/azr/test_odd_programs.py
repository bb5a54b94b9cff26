"""Odd programs through whole runs in both hosts: from a member's text to records, console, pages
and exports, no exception.

Longer: FUZZ_PROGRAMS=20000 pytest --timeout=7200 tests/hosts/azr/test_odd_programs.py
"""

from __future__ import annotations

import io
import os
import random
import re
from pathlib import Path
from typing import Any

import azr_stand_in
import pytest
from odd_programs import VALUES, WORDS, mutated, seeds
from rich.console import Console
from test_both_hosts import Local, parsers, play_in_azr, same_children, settings_of

from azr_population.analysis.report import write_report
from azr_population.cli import main
from azr_population.config.load import to_yaml
from azr_population.config.schema import Config
from azr_population.hosts.azr.azr_step import Step
from azr_population.hosts.azr.settings import population_of
from azr_population.method.completion_log import CompletionLog
from azr_population.pages.console.live import LiveView
from azr_population.pages.console.view import PlainView, StepLines, show_step
from azr_population.referee import Referee, RefereeSettings
from azr_population.runs import RunDirectory

__all__ = ["parsers", "same_children"]  # fixtures

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "150"))


class Odd:
    """Members who write mutated programs, and answers of the same kind."""

    def __init__(self) -> None:
        self.draw = random.Random(1)
        self.seeds = seeds()
        self.written = 0

    def __call__(self, prompt: str, luck: int) -> str:
        """What a tokenizer can give: no half of a surrogate pair."""
        return self._write(prompt).encode(errors="replace").decode()

    def _write(self, prompt: str) -> str:
        draw = self.draw
        program, inputs_given = draw.choice(self.seeds)
        program = mutated(program, draw)
        value = draw.choice([*VALUES, *WORDS, "1", "[1, 2]", "'a', 2"])
        if prompt.startswith("Design"):
            self.written += 1
            count = 6 if "6 different inputs" in prompt else 1
            inputs = [
                inputs_given
                if draw.random() < 0.8 and count == 1
                else draw.choice(["1", "2", *VALUES])
                for _ in range(count)
            ]
            blocks = "".join(f"```input\n{input}\n```\n" for input in inputs)
            return f"```python\n{program}\n```\n{blocks}```message\n{value}\n```"
        if prompt.startswith(("What", "Find")):
            kind = "output" if prompt.startswith("What") else "input"
            return f"```{kind}\n{value}\n```"
        return f"```python\n{program}\n```"


@pytest.fixture(scope="module")
def referee() -> Any:
    with Referee(RefereeSettings(workers=1, cpu_seconds=0.2, allow_unsandboxed=True)) as referee:
        yield referee


def test_odd_programs_end_no_run(referee: Referee, tmp_path: Path, caplog: Any) -> None:
    config = Config()
    config.population.teachers = config.population.students = 2
    config.population.batch_size, config.population.samples_per_task = 36, 2
    config.population.teacher_reward = "adversarial"
    config.task.max_program_chars = 10_000
    config.evolution.interval, config.evolution.grace_period = 2, 0
    config.evolution.operators = {"full_gaussian": 1.0}
    local = Local(referee, config)
    odd = Odd()
    local.engine._write = odd  # type: ignore[method-assign]
    held_out = local.play.context.domain.eval_tasks(5, 1, list(local.play.context.domain.types))
    local.play.held_out = local.play.context.domain.held_out(
        [odd.seeds[0][0], *(task.program for task in held_out)]
    )
    population = population_of(settings_of(config, teacher_reward="adversarial"), 1e-6)
    inside = Step(population, [CompletionLog(10, azr_stand_in.Bytes())])
    runs = {name: RunDirectory(tmp_path / name) for name in ("local", "azr")}
    output = io.StringIO()
    views = [PlainView(Console(file=output)), LiveView(Console(file=output)), StepLines()]
    for run in runs.values():
        run.create(to_yaml(config), {"command": ["train"]})
    for view in views:
        view.on_start({"name": "2t2s", "steps": 9, "step": 0, "dir": "x"})
    reasons: set[str] = set()
    while odd.written < PROGRAMS:
        records = {"local": local.play_step()}
        records["azr"], _ = play_in_azr(inside, local, config)
        reasons |= {row.reason for row in local.rows}
        for name, run in runs.items():
            record = records[name]
            record.append_to(run)
            for view in views:
                show_step(view, record.metrics, record.matches, record.lineage, record.notes)
    for view in views:
        view.on_end({"status": "finished", "dir": "x"})
    assert {"ok", "syntax_error", "error"} <= reasons
    assert "internal_error" not in reasons, caplog.text
    assert not caplog.records
    for name, run in runs.items():
        assert not run.unreadable()
        pages = write_report(run.path).read_text(encoding="utf-8")
        assert "<script>alert" not in pages
        assert all(
            sign.isprintable() or sign in "\n\t"
            for sign in re.sub(r"(?s)<script.*?</script>", "", pages)
        )
        for kind in ("jsonl", "csv", "verifiers"):
            out = str(tmp_path / f"{name}_{kind}")
            assert main(["export", str(run.path), "--to", kind, "--out", out]) == 0
        for asked in (["--limit", "0"], ["--refused", "--full"]):
            assert main(["show", str(run.path), *asked]) == 0
