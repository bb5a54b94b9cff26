"""Tokens a second of whole steps inside AZR: a population against single agents.

    ARMS="single 4t4s" BASE=azr_base OUT=cpu bash examples/azr_cpu.sh 3
    python benchmarks/azr_step.py cpu/4t4s/run cpu/single/run

Eight single runs in sequence sample as many tokens a second as one, so one single run is enough.
Tokens are those that members sampled; seconds are wall-clock time from a step's start to its
record, before AZR validates and saves. Not covered: start-up, which eight single runs pay eight
times, and GPUs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from azr_population.runs import RunDirectory
from azr_population.runs.records import metrics_of_roles


def steps(path: Path) -> list[tuple[float, float]]:
    """Tokens and seconds of each step."""
    return [
        (
            sum(figures["generated_tokens"] for figures in metrics_of_roles(step).values()),
            step["time/step"],
        )
        for step in RunDirectory(path).metrics()
    ]


def rate(played: list[tuple[float, float]]) -> float:
    """Tokens a second over all steps."""
    return sum(tokens for tokens, _ in played) / sum(seconds for _, seconds in played)


def main() -> None:
    """Prints each run's steps, then the ratio of the population to the single agents."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("population", type=Path, metavar="RUN")
    parser.add_argument("single", type=Path, nargs="+", metavar="RUN")
    arguments = parser.parse_args()
    alone = [step for run in arguments.single for step in steps(run)]
    together = steps(arguments.population)
    for name, played in (("population", together), ("single", alone)):
        listed = ", ".join(f"{tokens:.0f} in {seconds:.1f} s" for tokens, seconds in played)
        print(f"{name}: {rate(played):.1f} tokens a second ({listed})")
    print(f"population / single: {rate(together) / rate(alone):.2f}")


if __name__ == "__main__":
    main()
