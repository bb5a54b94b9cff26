"""Records with anything in the place of anything: every diagnostic gives what there is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from azr_population.runs.diagnostics import (
    MEASURES,
    consumption,
    coverage_map,
    match_ups,
    operator_credit,
    series,
)
from azr_population.runs.directory import RunDirectory

ODD: tuple[Any, ...] = (None, 7, -3.5, "x", [], {}, [1, "a"], {"a": 1}, True, [[1]], "1", 1e300)
CONFIGS = (None, "evolution: 3", "[1, 2]", "a: b: c", "evolution: {fitness: [1]}", "x")


def whole_run() -> dict[str, list[dict[str, Any]]]:
    """Twelve steps of two teachers and two students; a student is replaced every fourth."""
    run: dict[str, list[dict[str, Any]]] = {
        "metrics": [],
        "matches": [],
        "lineage": [],
        "tasks": [],
    }
    names = ("teacher_0", "teacher_1", "student_0", "student_1")
    for step in range(1, 13):
        member = {"mu": 25.0, "sigma": 2.0, "tokens": 90, "validity": 0.5, "entropy": 0.4}
        run["metrics"].append(
            {
                "step": step,
                "seconds": 4.0,
                "phases": {"propose": 1.0, "exam": 1.0},
                "roles": {"teacher": dict(member), "student": dict(member)},
                "members": {name: {"role": name[:7], **member} for name in names},
                "exam": {"mean": 0.2, "members": {"student_0": 0.2, "student_1": 0.2}},
                "operators": {"dare": {"born": 1, "gain_over_victim": 0.1}},
            }
        )
        for i in range(2):
            pair = {"teacher": f"teacher_{i}", "student": f"student_{i}"}
            wins = {"student_wins": 3, "teacher_wins": 2, "draws": 1, "forfeits": 1}
            run["matches"].append({"step": step, **pair, "valid": 6, "solve_rate": 0.5, **wins})
            program = f"def f(n):\n    return n + {step}"
            data = {"program": program, "inputs": ["1"], "outputs": ["2"]}
            run["tasks"].append({"step": step, **pair, **data})
        if step % 4 == 0:
            fitness = {"victim": 18.0, "parents": [19.0]}
            birth = {"child": "student_0", "parents": ["student_1"], "operator": "dare"}
            run["lineage"].append({"step": step, **birth, "fitness": fitness})
    return run


def damaged(value: Any, chance: random.Random, share: float) -> Any:
    if chance.random() < share:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if chance.random() > share / 2}
        return {key: damaged(item, chance, share) for key, item in kept.items()}
    return [damaged(item, chance, share) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(40))
def test_damage_costs_no_more_than_what_it_hit(
    write: Callable[..., RunDirectory], seed: int
) -> None:
    chance = random.Random(seed)
    share = (0.01, 0.05, 0.2)[seed % 3]
    records = {
        name: [damaged(row, chance, share) for row in rows] for name, rows in whole_run().items()
    }
    run = write(config=chance.choice(CONFIGS), **records)
    for name in records:
        with (run.path / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(records[name][-1])[:20])
    for name in MEASURES:
        points = series(run, name)
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps))
    consumption(run), operator_credit(run), match_ups(run)
    coverage_map(run)
