"""Records with anything in the place of anything: the page shows what there is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from azr_population.analysis import html
from azr_population.analysis.report import write_report
from azr_population.errors import UserError
from azr_population.runs.directory import RunDirectory

ODD: tuple[Any, ...] = (None, 7, -3.5, "x", [], {}, [1, "a"], {"a": 1}, True, [[1]], "1", 1e300)
CONFIGS = ("seed: 1", "evolution: 3", "[1, 2]", "population: 4", "evolution: {fitness: [1]}")


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
        metrics = {
            "mu": 25.0,
            "sigma": 2.0,
            "generated_tokens": 90,
            "valid_frac": 0.5,
            "entropy": 0.4,
        }
        line = {
            f"{name}/{k}": v for name in (*names, "teacher", "student") for k, v in metrics.items()
        }
        line |= {"eval/greedy": 0.2, "student_0/eval/greedy": 0.2, "time/step": 4.0}
        line |= {"evolution/dare/born": 1, "evolution/dare/gain_over_victim": 0.1}
        run["metrics"].append({"step": step, **line})
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
        remaining = {key: item for key, item in value.items() if chance.random() > share / 2}
        return {key: damaged(item, chance, share) for key, item in remaining.items()}
    return [damaged(item, chance, share) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(12))
def test_damage_costs_no_more_than_what_it_hit(
    write: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(html, "bundle", lambda: "")
    chance = random.Random(seed)
    share = (0.01, 0.05, 0.2)[seed % 3]
    records = {
        name: [damaged(row, chance, share) for row in rows] for name, rows in whole_run().items()
    }
    config = CONFIGS[seed % len(CONFIGS)]
    run = write(config=config, **records)
    for name in records:
        with (run.path / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(records[name][-1])[:20])
    if isinstance(yaml.safe_load(config), dict):
        assert "Incomplete: 1" in write_report(run.path).read_text(encoding="utf-8")
    else:
        with pytest.raises(UserError):
            write_report(run.path)
