"""Records of a made-up run, in the shape that the training loop writes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HOSTILE = "def f(x):\n    return '</script><img onerror=alert(1) src=x>' # <b>&amp; \u2028 ]]>"
TYPES = ("code_o", "code_i", "code_f")
Run = dict[str, list[dict[str, Any]]]


def make_run(steps: int = 12, teachers: int = 4, students: int = 4, seed: int = 3) -> Run:
    """All records of a run; (0, 0) is the single agent. Every fifth step replaces a student."""
    chance = random.Random(seed)
    names = [f"teacher_{i}" for i in range(teachers)] + [f"student_{i}" for i in range(students)]
    names = names or ["agent_0"]
    mu = dict.fromkeys(names, 25.0)
    sigma = dict.fromkeys(names, 25 / 3)
    generation = dict.fromkeys(names, 0)
    run: Run = {"metrics": [], "matches": [], "lineage": [], "tasks": []}
    for step in range(1, steps + 1):
        order = chance.sample(range(students), students)
        for t in range(min(teachers, students)):
            teacher, student = f"teacher_{t}", f"student_{order[t]}"
            before = mu[teacher], mu[student]
            swing = chance.gauss(0.2, 1)
            mu[teacher] -= swing
            mu[student] += swing
            sigma[teacher] = sigma[student] = max(0.5, 8 / step)
            valid = chance.randint(30, 48)
            rate = round(chance.uniform(0.2, 0.6), 3)
            won = int(valid * rate)
            run["matches"].append(
                {
                    "step": step,
                    "teacher": teacher,
                    "student": student,
                    "proposed": 48,
                    "valid": valid,
                    "solve_rate": rate,
                    "student_wins": won,
                    "teacher_wins": valid - won,
                    "draws": 0,
                    "forfeits": 48 - valid,
                    "win_probability": 0.5,
                    "teacher_mu": [before[0], mu[teacher]],
                    "student_mu": [before[1], mu[student]],
                }
            )
        if step % 5 == 0 and students > 2:
            child = f"student_{step // 5 % students}"
            generation[child] += 1
            run["lineage"].append(
                {
                    "step": step,
                    "child": child,
                    "generation": generation[child],
                    "parents": [n for n in names if n.startswith("student") and n != child][:2],
                    "operator": "svd_subspace",
                    "options": {"k": 4, "eta": 1.23456},
                    "seed": step,
                    "fitness": {"victim": 10.0 + step, "parents": [20.25, 18.0]},
                    "mu": 25.0,
                    "sigma": 5.0,
                }
            )
        for i, type in enumerate(TYPES):
            solved = [chance.random() < 0.4 for _ in range(4)]
            run["tasks"].append(
                {
                    "step": step,
                    "type": type,
                    "teacher": names[0],
                    "student": names[-1],
                    "program": HOSTILE if i == 1 else f"def f(n):\n    return n * {step} + {i}",
                    "inputs": ["3"],
                    "outputs": [str(3 * step + i)],
                    "message": "scale <and> shift" if type == "code_f" else "",
                    "answers": ["9", "'</script>'", "[1]", "2"],
                    "solved": solved,
                    "reasons": ["ok" if right else "wrong" for right in solved],
                    "solve_rate": sum(solved) / 4,
                    "ast_nodes": 9 + step,
                    "ast_depth": 4,
                    "cyclomatic": 1,
                    "lines": 2,
                }
            )
        run["metrics"].append(_metrics(step, names, mu, sigma, generation, chance))
    return run


def _metrics(
    step: int,
    names: list[str],
    mu: dict[str, float],
    sigma: dict[str, float],
    generation: dict[str, int],
    chance: random.Random,
) -> dict[str, Any]:
    proposing = {
        "validity": 0.8,
        "unique": 0.97,
        "reward": 0.3 + chance.gauss(0, 0.05),
        "solve_rate": None,
        "tokens": 3000,
        "rollouts": 192,
        "ast_nodes": 25 + step / 4,
        "ast_depth": 7.5,
        "lines": 4.1,
        "cyclomatic": 1.8,
        "proposal_tokens": 55.0,
    }
    solving = {
        "solve_rate": min(0.9, 0.3 + 0.01 * step) + chance.gauss(0, 0.02),
        "parsed": 0.9,
        "reward": -0.1 + 0.01 * step,
        "answer_tokens": 4.0,
        "tokens": 900,
        "rollouts": 192,
    }
    by_role = {"teacher": proposing, "student": solving, "agent": {**proposing, **solving}}
    present = dict.fromkeys(name.split("_")[0] for name in names)
    exam = {
        "mean": min(0.8, 0.2 + 0.01 * step),
        "best": 0.85,
        "worst": 0.1,
        "members": {names[-1]: 0.3},
    }
    return {
        "step": step,
        "seconds": 4.2,
        "phases": {"propose": 1.0, "solve": 1.2, "update": 2.0},
        "roles": {role: by_role[role] for role in present},
        "members": {
            name: {
                "role": name.split("_")[0],
                "mu": mu[name],
                "sigma": sigma[name],
                "generation": generation[name],
                **by_role[name.split("_")[0]],
                "updates": 1,
            }
            for name in names
        },
        "types": {type: {"validity": 0.8, "unique": 1.0, "solve_rate": 0.3} for type in TYPES},
        "exam": exam if step % 4 == 0 else None,
    }


@pytest.fixture
def made_up_run() -> Callable[..., Run]:
    """The function that makes up a run."""
    return make_run


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes a made-up run directory and returns it."""

    def write(run: Run | None = None, steps: int = 12) -> Path:
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        config = f"seed: 1\npopulation: {{name: 4t4s, teachers: 4}}\nrun: {{steps: {steps}}}\n"
        (folder / "config.yaml").write_text(config)
        (folder / "environment.json").write_text('{"command": "azr-population train <x>"}')
        for record, rows in (run if run is not None else make_run()).items():
            (folder / f"{record}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    return write
