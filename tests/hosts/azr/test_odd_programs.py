"""Odd programs through whole runs in both hosts: from a member's text to records, console, pages
and exports, no exception.

The programs are AZR's seed tasks where AZR_HOME has them, else a few of ours, mutated by `mutated`.
Longer: FUZZ_PROGRAMS=20000 pytest --timeout=7200 tests/hosts/azr/test_odd_programs.py
"""

from __future__ import annotations

import io
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import azr_stand_in
import needs
import pytest
from rich.console import Console
from test_both_hosts import Local, parsers, play_in_azr, same_children, settings_of

from azr_population.analysis.report import write_report
from azr_population.cli import main
from azr_population.config.load import to_yaml
from azr_population.config.schema import Config
from azr_population.hosts.azr.settings import population_of
from azr_population.hosts.azr.step import Step
from azr_population.method.completion_log import CompletionLog
from azr_population.pages.console.live import LiveView
from azr_population.pages.console.view import PlainView, StepLines, show_step
from azr_population.referee import Referee, RefereeSettings
from azr_population.runs import RunDirectory

__all__ = ["parsers", "same_children"]  # fixtures

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "150"))
OURS = [
    ("def f(a, b=2):\n    return [a * i + b for i in range(3)]", "1"),
    ("class C:\n    def __init__(self, a): self.a = a\ndef f(a):\n    return vars(C(a))", "[2]"),
    ("def f(s):\n    return f'{s!r:>10} and {len(s)} more'", "'ab'"),
    ("def f(x):\n    match x:\n        case [a, *b]: return b\n    return {'x': 1}", "(1, 2)"),
]
VALUES = [
    *("f'{x} apples'", "f'{3!r:>{9}} {7=}'", "f'''{chr(7)}\n'''", "b'\\xff\\x00'", "'\\ud800'"),
    *("'\u202e\u2066'", "'\x1b[2J'", "'\ufeff\U0001f468\u200d'", "'\\0'", "1e999", "-1e999j"),
    *("9" * 4000, "0x" + "f" * 4000, "1_0.0e-400", "...", "-" * 500 + "1", "(" * 90 + ")" * 90),
    *("[" * 150 + "]" * 150, "lambda: " * 50 + "0", "not " * 200 + "1", "{**{}, 1: ...}"),
    *("(y := 1)", "'</script><script>alert(1)</script>'", "'=cmd()|A1'", "'\\\\input{/x}$%_'"),
    *("float('nan')", "10 ** 5000", "'a' * 10 ** 6", "[0] * 10 ** 9", "f(1)", "[*'ab']", "{-0.0}"),
    *("print('\\x1b]0;x\\x07')", "open('/etc/passwd').read()", "(lambda s: s)(2)", "'\\N{DASH}'"),
]
"""Expressions."""
WORDS = [
    *("\ud800", "\udcff", "\0", "\ufeff", "\x0c", "\r", "\u00e9", "\uff11", "\ufb01", "\\"),
    *("(" * 300, "9" * 5000, "while True: pass", "raise SystemExit", "global f", "return"),
    *("yield x", "await x", "del f", "import os", "from __future__ import annotations", "@f"),
    *("# coding: utf-7", "x = x", "'''", '"', "```", "</answer>", "\t", "pass", "f = 1", "else:"),
]


def seeds() -> list[tuple[str, str]]:
    """Programs and an input of each, to begin with."""
    file = Path(needs.AZR_HOME, "data", "7b_coder_seed_io.jsonl")
    if not needs.AZR_HOME or not file.is_file():
        return OURS
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [*OURS, *((row["snippet"], row["input"]) for row in rows)]


def mutated(program: str, draw: random.Random) -> str:
    """The program with up to three changes: values in the place of others, words put in, lines
    doubled, struck out or moved, signs lost."""
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        lines = program.split("\n")
        line = draw.randrange(len(lines))
        kind = draw.random()
        if kind < 0.6:
            found = list(re.finditer(r"\b\d+\b|'\w*'|(?<=return ).+|(?<== ).+", program))
            if found:
                start, end = draw.choice(found).span()
                program = program[:start] + draw.choice(VALUES) + program[end:]
            continue
        if kind < 0.8:
            indent = lines[line][: len(lines[line]) - len(lines[line].lstrip())]
            lines.insert(line, indent + draw.choice(WORDS))
        elif kind < 0.9:
            lines[line : line + 1] = [lines[line]] * draw.randrange(3)
        else:
            at = draw.randrange(len(program) + 1)
            lines = (program[:at] + draw.choice(["", "'", "{"]) + program[at + 1 :]).split("\n")
        program = "\n".join(lines)
    return program


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
        program, given = draw.choice(self.seeds)
        program = mutated(program, draw)
        value = draw.choice([*VALUES, *WORDS, "1", "[1, 2]", "'a', 2"])
        if prompt.startswith("Design"):
            self.written += 1
            count = 6 if "6 different inputs" in prompt else 1
            inputs = [
                given if draw.random() < 0.8 and count == 1 else draw.choice(["1", "2", *VALUES])
                for _ in range(count)
            ]
            blocks = "".join(f"```input\n{one}\n```\n" for one in inputs)
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
    exam = local.play.tools.domain.exam(5, 1, list(local.play.tools.domain.types))
    local.play.held_out = local.play.tools.domain.held_out(
        [odd.seeds[0][0], *(task.program for task in exam)]
    )
    population = population_of(settings_of(config, teacher_reward="adversarial"), 1e-6)
    inside = Step(population, [CompletionLog(10, azr_stand_in.Bytes())])
    runs = {name: RunDirectory(tmp_path / name) for name in ("local", "azr")}
    told = io.StringIO()
    views = [PlainView(Console(file=told)), LiveView(Console(file=told)), StepLines()]
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
            one = records[name]
            one.append_to(run)
            for view in views:
                show_step(view, one.metrics, one.matches, one.lineage, one.notes)
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
        for kind in ("jsonl", "csv", "latex", "verifiers"):
            out = str(tmp_path / f"{name}_{kind}")
            assert main(["export", str(run.path), "--to", kind, "--out", out]) == 0
        for asked in (["--limit", "0"], ["--refused", "--full"]):
            assert main(["show", str(run.path), *asked]) == 0
