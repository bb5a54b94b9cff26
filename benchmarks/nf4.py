"""A base's eval before and after its linear layers are quantised: python benchmarks/nf4.py FOLDER

    python benchmarks/nf4.py bases/smollm2 [--tasks 60] [--json FILE]

A base warmed up by `azr-population base` answers the same held-out tasks in bfloat16 and in NF4
(`base.quantization`), greedily. Beside it stands what right answers to them, written as in the
warm-up, cost at temperature 1: nats an answer.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from azr_population.analysis.statistics import compare, interval
from azr_population.bases.demonstrations import from_tasks
from azr_population.config.load import load_config
from azr_population.config.schema import Config
from azr_population.domains.format import Format
from azr_population.domains.task import Task
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.held_out_eval import held_out_eval
from azr_population.method.members import Member, Role
from azr_population.method.step_context import StepContext, domain_of, format_of, open_referee

TYPES = ("code_o", "code_i")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="a folder of `azr-population base`")
    parser.add_argument("--tasks", type=int, default=60, help="of each type")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    greedy: dict[str, list[float]] = {}
    result: dict[str, Any] = {}
    for quantization in ("null", "nf4"):
        config = load_config([
            "base=smollm2", f"base.path={arguments.base}", f"base.quantization={quantization}",
            "population=single", f"task.types=[{','.join(TYPES)}]", "engine.threads=0",
            f"eval.tasks_per_type={arguments.tasks}",
        ])  # fmt: skip
        name = "bfloat16" if quantization == "null" else quantization
        greedy[name], result[name] = measure(config)
        print(name, json.dumps(result[name]), flush=True)
    gap = compare(greedy["nf4"], greedy["bfloat16"], paired=True, permute=False)
    result["nf4 - bfloat16, greedy"] = [round(x, 4) for x in (gap.mean, gap.low, gap.high)]
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def measure(config: Config) -> tuple[list[float], dict[str, Any]]:
    """The bare base's greedy score at each task, and the row of the table."""
    held_out = held_out_eval(config)
    with open_referee(config) as referee, open_engine(config) as engine:
        tools = StepContext(engine, referee, domain_of(config), format_of(config))
        # A fresh member changes nothing.
        scores = held_out.greedy(tools, Member("agent_0", Role.AGENT, 0))
        right = answers(held_out.tasks, tools.format)
        likely = engine.likelihoods(*zip(*right, strict=True), [0] * len(right))
        bytes_held = engine.engine.learner.model.get_memory_footprint()
    row: dict[str, Any] = {"memory_mb": round(bytes_held / 1e6)}
    for kind in TYPES:
        both = zip(held_out.tasks, scores, strict=True)
        estimate = interval([score for task, score in both if task.type == kind])
        row[f"{kind}, greedy"] = [round(x, 4) for x in (estimate.mean, estimate.low, estimate.high)]
    row["nats of a right answer"] = round(mean(-math.log(chance) for chance in likely), 3)
    return scores, row


def answers(tasks: Sequence[Task], format: Format) -> list[tuple[str, str]]:
    """As many prompts with right answers as there are tasks."""
    groups = (group for group in from_tasks(tasks, format, Random(0)) if group.phase == "solve")
    pairs = ((each.prompt, each.completion) for group in groups for each in group.demonstrations)
    return list(islice(pairs, len(tasks)))


if __name__ == "__main__":
    main()
