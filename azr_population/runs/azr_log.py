"""Stock AZR runs, read from their console output.

AZR logs through veRL (verl/utils/logger/aggregate_logger.py): one line per step,
`step:<n> - <key>:<value> - <key>:<value>`. Its keys are AZR's (trainer/ppo/azr_ray_trainer.py,
rewards/reward_managers.py): `gen_<type>/...` of proposals and `pred_<type>/...` of answers.
"""

import math
import re
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import read_text

Rows = dict[int, dict[str, float]]
"""Step -> key -> value."""

VALIDATION = "val/test_score/"
"""AZR's prefix of keys by source of validation tasks."""

KEYS = {
    "solve_rate": ("agent", r"pred_code_\w+/accuracy"),
    "valid_frac": ("agent", r"gen_code_\w+/format_score"),
    # AZR puts the type before this key twice.
    "lines": ("agent", r"(?:gen_code_\w+/){1,2}avg_program_lines"),
    "proposal_reward": ("agent", r"gen_code_\w+/critic/rewards/mean"),
    "proposal_tokens": ("agent", r"gen_code_\w+/response_length/mean"),
    "answer_tokens": ("agent", r"pred_code_\w+/response_length/mean"),
    "entropy": ("agent", r"actor/entropy(?:_loss)?"),
    "time/step": (None, r"timing_s/step"),
    # veRL's own trainers have it, AZR's has not.
    "total/generated_tokens": (None, r"perf/total_num_tokens"),
    "validation": (None, rf"{VALIDATION}.+"),
}
"""Our metric -> its role and AZR's keys, averaged over the task types, or the sources of
validation. AZR's complexity, Halstead and diversity scores are left out: it scales or counts them
differently."""

MEASURED_DIFFERENTLY = {
    "solve_rate": "AZR's solve rate is of tasks drawn from its buffer, ours of new tasks",
    "valid_frac": "AZR's format score is the share that parses and runs; ours also passes the "
    "referee's rules",
    "time/step": "AZR's seconds per step include testing and checkpoints",
}
"""Metrics that a stock log measures differently."""

_LOGGED = re.compile("|".join(pattern for _, pattern in KEYS.values()))
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RAY_PREFIX = re.compile(r"^\(\w+ pid=\d+[^)\n]*\) ?", re.MULTILINE)
_STEP = re.compile(r"\bstep:(\d+) - (.*)")
_NUMBER = re.compile(r"(?:[\w.]+\()?([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf)\)?")
SETTINGS = {
    "base": r"'model':\s*\{(?:[^{}]|\{[^{}]*\})*?'path':\s*'([^']+)'",
    "data.val_files": r"'val_files':\s*'([^']+)'",
    "data.train_batch_size": r"'train_batch_size':\s*(\d+)",
    "azr.reward.n_samples": r"'n_samples':\s*(\d+)",
    "data.max_response_length": r"'max_response_length':\s*(\d+)",
}
"""Settings -> where console output has them.

`pprint` sorts keys, so a model's path comes after other keys, some of them dicts."""


def read_azr_log(path: Path) -> tuple[Rows, dict[str, str]]:
    """All steps of a log, and those settings that console output prints. Raises UserError: the file
    cannot be read, or has no step, or nothing that AZR logs."""
    text = read_text(path, errors="replace")
    rows = from_console(text, str(path))
    plain = _RAY_PREFIX.sub("", _ANSI.sub("", text))
    matches = {key: re.search(pattern, plain) for key, pattern in SETTINGS.items()}
    settings = {key: match.group(1) for key, match in matches.items() if match}
    if not rows:
        raise UserError(
            f"{path} is neither a run's folder nor the console output of AZR: no line is like "
            "`step:1 - actor/entropy:0.3 - ...`"
        )
    keys = {key for values in rows.values() for key in values}
    if not any(map(_LOGGED.fullmatch, keys)):
        raise UserError(
            f"{path} holds steps, but nothing that AZR logs (such as pred_code_o/accuracy or "
            f"{VALIDATION}...): {', '.join(sorted(keys)[:3])}"
        )
    return rows, settings


def from_console(text: str, name: str = "the log") -> Rows:
    """The steps in console output; prefixes, colours and other lines are ignored, and so is a last
    line without an end: it may still be being written. A run that is resumed goes back to an
    earlier step, whose later values count.

    Raises UserError: the steps begin anew, so there are two runs.
    """
    rows: Rows = {}
    for line in text.split("\n")[:-1]:
        match = _STEP.search(_ANSI.sub("", line))
        if match is None:
            continue
        step, reached = int(match.group(1)), max(rows, default=0)
        if step <= 1 < reached:
            raise UserError(
                f"{name} holds two runs: after step {reached} it begins again with step {step}; "
                "put each run into a file of its own"
            )
        values = rows.setdefault(step, {})
        for item in match.group(2).split(" - "):
            key, _, value = item.strip().rpartition(":")
            number = _NUMBER.match(value)
            if key and number:
                value = float(number.group(1))
                values[key] = value if math.isfinite(value) else math.nan
    return {step: values for step, values in rows.items() if values}


def flat_lines(rows: Rows) -> list[dict[str, Any]]:
    """The log as flat records under our names (`agent/solve_rate`, `validation`,
    `validation/<source>`, `time/step`). The validation at a run's end, under the number of a step
    that is not played any more, is of the last step."""
    lines: dict[int, dict[str, Any]] = {}
    for name, (role, pattern) in KEYS.items():  # validations come last
        for step, values in sorted(rows.items()):
            matching = {key: value for key, value in values.items() if re.fullmatch(pattern, key)}
            if name == "lines":  # 0: none valid
                matching = {key: value for key, value in matching.items() if value > 0}
            if not matching:
                continue
            at = min(step, max(lines, default=0)) if name == "validation" else step
            line = lines.setdefault(at, {"step": at})
            line[f"{role}/{name}" if role else name] = math.fsum(matching.values()) / len(matching)
            if name == "validation":
                line |= {key.replace(VALIDATION, "validation/"): matching[key] for key in matching}
    return [lines[step] for step in sorted(lines)]
