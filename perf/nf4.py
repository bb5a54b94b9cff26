"""A base's eval before and after its linear layers are quantised: python perf/nf4.py FOLDER

    python perf/nf4.py bases/smollm2 [--tasks 60] [--json FILE]

A base warmed up by `azr-population base` answers the same held-out tasks in bfloat16 and in NF4
(`base.quantization`), greedily. Beside it stands what right answers to them, written as in the
warm-up, cost at temperature 1: nats an answer.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import mean
from typing import Any

from azr_population.analysis.statistics import compare, interval
from azr_population.config.load import load_config
from azr_population.config.schema import Config
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.held_out_eval import held_out_eval
from azr_population.method.members import Member, Role
from azr_population.method.phases import StepContext

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
    gap = compare(greedy["nf4"], greedy["bfloat16"], paired=True)
    result["nf4 - bfloat16, greedy"] = [round(x, 4) for x in (gap.mean, gap.low, gap.high)]
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def measure(config: Config) -> tuple[list[float], dict[str, Any]]:
    """The bare base's greedy score at each task, and the row of the table."""
    held_out = held_out_eval(config.eval, config.task)
    with StepContext.open(config, open_engine(config)) as tools:
        # A fresh member changes nothing.
        scores = held_out.greedy(tools, Member("agent_0", Role.AGENT, 0))
        prompts = [tools.format.solve_prompt(task) for task in held_out.tasks]
        answers = [tools.format.write_answer(task) for task in held_out.tasks]
        likely = tools.engine.likelihoods(prompts, answers, [0] * len(answers))
        bytes_held = tools.engine.engine.learner.model.get_memory_footprint()
    row: dict[str, Any] = {"memory_mb": round(bytes_held / 1e6)}
    for kind in TYPES:
        both = zip(held_out.tasks, scores, strict=True)
        estimate = interval([score for task, score in both if task.type == kind])
        row[f"{kind}, greedy"] = [round(x, 4) for x in (estimate.mean, estimate.low, estimate.high)]
    row["nats of a right answer"] = round(mean(-math.log(chance) for chance in likely), 3)
    return scores, row


if __name__ == "__main__":
    main()
