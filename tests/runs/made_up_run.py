"""Records of a made-up run, in the shape that the training loop writes. No test is in here."""

import json
import random
from typing import Any

HOSTILE = "def f(x):\n    return '</script><img onerror=alert(1) src=x>' # <b>&amp; \u2028 ]]>"
TYPES = ("code_o", "code_i", "code_f")
OPERATORS = ("svd_subspace", "dare", "full_gaussian", "component_masking", "layer_wise")
VERDICTS = {"refused": "boolean", "valid": "ok", "solved": "solved", "failed": "wrong"}
Run = dict[str, list[dict[str, Any]]]


def make_run(steps=12, teachers=4, students=4, seed=3, tasks=3, evolving=False):
    """All records of a run; (0, 0) is the single agent.

    Every fifth step replaces one student, or if `evolving` the worst quarter of either role.
    `tasks` is how many valid tasks each step records.
    """
    chance = random.Random(seed)
    names = [f"teacher_{i}" for i in range(teachers)] + [f"student_{i}" for i in range(students)]
    names = names or ["agent_0"]
    mu = dict.fromkeys(names, 25.0)
    sigma = dict.fromkeys(names, 25 / 3)
    generation = dict.fromkeys(names, 0)
    run = {"metrics": [], "matches": [], "lineage": [], "tasks": [], "completions": []}
    for step in range(1, steps + 1):
        order = chance.sample(range(students), students)
        for t in range(min(teachers, students)):
            teacher, student = f"teacher_{t}", f"student_{order[t]}"
            run["matches"].append(_match(step, teacher, student, mu, chance))
            sigma[teacher] = sigma[student] = max(0.5, 8 / step)
        if step % 5 == 0 and not evolving and students > 2:
            child = f"student_{step // 5 % students}"
            parents = [n for n in names if n.startswith("student") and n != child][:2]
            generation[child] += 1
            fitness = {"victim": 10.0 + step, "parents": [20.25, 18.0]}
            run["lineage"].append(
                _birth(step, child, generation[child], parents, "svd_subspace", fitness)
            )
        elif step % 5 == 0 and evolving:
            for role, size in (("teacher", teachers), ("student", students)):
                if size > 2:
                    run["lineage"] += _births(step, role, size, mu, generation, chance)
        run["tasks"] += [
            _task(step, i, names[i % (teachers or 1)], names[-1 - i % (students or 1)], chance)
            for i in range(tasks)
        ]
        run["completions"] += [_completion(step, names[0], verdict) for verdict in VERDICTS]
        run["metrics"].append(_metrics(step, names, mu, sigma, generation, chance))
    return run


def write_run(folder, run=None, steps=12, config=None):
    """Writes records as a run directory and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"seed: 1\npopulation: {{name: 4t4s, teachers: 4}}\nrun: {{steps: {steps}}}\n"
    (folder / "config.yaml").write_text(config or text)
    (folder / "environment.json").write_text('{"command": "azr-population train <x>"}')
    for record, rows in (run if run is not None else make_run()).items():
        (folder / f"{record}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def _completion(step, member, verdict):
    return {
        "step": step, "phase": "propose" if verdict in ("refused", "valid") else "solve",
        "member": member, "type": TYPES[step % 3], "verdict": verdict, "reason": VERDICTS[verdict],
        "reward": -0.5, "advantage": None, "log_prob": -0.25, "tokens": 40, "finished": True,
        "prompt": "What is the output?\n" * 20, "completion": f"So:\n```python\n{HOSTILE}\n```",
    }  # fmt: skip


def _match(step, teacher, student, mu, chance):
    before = mu[teacher], mu[student]
    # Low numbers teach better and high numbers learn better, so that the table has a pattern.
    skill = 0.35 + 0.05 * int(student[-1]) - 0.04 * int(teacher[-1])
    swing = chance.gauss(0.2, 1)
    mu[teacher] -= swing
    mu[student] += swing
    valid = chance.randint(30, 48)
    rate = round(min(1.0, max(0.0, skill + chance.gauss(0, 0.1))), 3)
    won = int(valid * rate)
    return {
        "step": step, "teacher": teacher, "student": student, "proposed": 48, "valid": valid,
        "solve_rate": rate, "student_wins": won, "teacher_wins": valid - won, "draws": 0,
        "invalid": 48 - valid, "win_probability": 0.5, "teacher_mu": [before[0], mu[teacher]],
        "student_mu": [before[1], mu[student]],
    }  # fmt: skip


def _birth(step, child, generation, parents, operator, fitness):
    return {
        "step": step, "child": child, "generation": generation, "parents": parents,
        "operator": operator, "options": {"k": 4, "eta": 1.23456}, "seed": step, "fitness": fitness,
        "mu": 25.0, "sigma": 5.0,
    }  # fmt: skip


def _births(step, role, size, mu, generation, chance):
    ranked = sorted((f"{role}_{i}" for i in range(size)), key=lambda name: mu[name])
    born = []
    for child in ranked[: max(1, size // 4)]:
        operator = chance.choice(OPERATORS)
        two = operator in ("svd_subspace", "dare", "layer_wise")
        parents = chance.sample(ranked[size // 2 :], 2 if two else 1)
        generation[child] = 1 + max(generation[name] for name in parents)
        fitness = {"victim": mu[child] - 3, "parents": [mu[name] - 3 for name in parents]}
        born.append(_birth(step, child, generation[child], parents, operator, fitness))
        mu[child] = sum(mu[name] for name in parents) / len(parents)
    return born


def _program(step, i, chance):
    """Programs that grow with the steps, of a few kinds."""
    if i % 7 == 1:
        return HOSTILE
    body = ["n = [v for v in x if v % 2]", "x = sorted(x)[1:]", "x = [v * 3 for v in x]"]
    body += ["if len(x) > 3:\n        x = x[::-1]", "for v in list(x):\n        x.append(v)"]
    body += ["s = ''.join(str(v) for v in x)", "x = x + [max(x or [0])]  # the largest again"]
    lines = [chance.choice(body) for _ in range(1 + (step * 5) // 200 + chance.randint(0, 2))]
    return "def f(x):\n    " + "\n    ".join(lines) + f"\n    return len(x) * {step} + {i}"


def _task(step, i, teacher, student, chance):
    solved = [chance.random() < 0.4 for _ in range(4)]
    type = TYPES[i % 3]
    program = _program(step, i, chance)
    return {
        "step": step, "type": type, "teacher": teacher, "student": student, "program": program,
        "inputs": ["[3, 1, 4]"], "outputs": [str(3 * step + i)],
        "message": "scale <and> shift" if type == "code_f" else "",
        "answers": ["9", "'</script>'", "[1]", "2"], "solved": solved,
        "reasons": ["solved" if right else "wrong" for right in solved],
        "solve_rate": sum(solved) / 4, "copies": 0, "ast_nodes": 9 + step + program.count("\n"),
        "ast_depth": 4, "cyclomatic": 1 + program.count("for") + program.count("if"),
        "lines": 1 + program.count("\n"),
    }  # fmt: skip


def _metrics(step, names, mu, sigma, generation, chance):
    def proposing():
        return {
            "valid_frac": 0.8, "unique_frac": 0.97, "reward": 0.3 + chance.gauss(0, 0.05),
            "solve_rate": None, "generated_tokens": 3000, "rollouts": 192,
            "ast_nodes": 25 + step / 4, "ast_depth": 7.5, "lines": 4.1, "cyclomatic": 1.8,
            "halstead_volume": 40.0 + len(names) * step, "proposal_tokens": 55.0,
            "loss": chance.gauss(0, 0.02), "entropy": 0.9,
        }  # fmt: skip

    def solving():
        return {
            "solve_rate": min(0.9, 0.3 + 0.01 * step) + chance.gauss(0, 0.02), "parsed_frac": 0.9,
            "reward": -0.1 + 0.01 * step, "answer_tokens": 4.0, "generated_tokens": 900,
            "rollouts": 192, "loss": chance.gauss(0, 0.02), "entropy": 0.5,
        }  # fmt: skip

    by_role = {
        "teacher": proposing,
        "student": solving,
        "agent": lambda: {**proposing(), **solving()},
    }
    groups = {name.split("_")[0]: by_role[name.split("_")[0]]() for name in names}
    for name in names:
        groups[name] = {
            "mu": mu[name], "sigma": sigma[name], "generation": generation[name],
            **by_role[name.split("_")[0]](), "updates": 1, "trained_samples": 48,
            "trained_tokens": 1500,
        }  # fmt: skip
    groups |= {f"type/{type}": {"valid_frac": 0.8, "solve_rate": 0.3} for type in TYPES}
    groups["time"] = {"step": 4.2, "propose": 1.0, "solve": 1.2, "update": 2.0}
    groups["reason"] = {
        "ok": 150, "error": max(0, 20 - step // 10), "unparsable": 12, "constant": 4 + step // 20,
    }  # fmt: skip
    if step % 4 == 0:
        groups["eval"] = {"greedy": min(0.8, 0.2 + 0.01 * step), "best": 0.85, "worst": 0.1}
        groups[names[-1]]["eval/greedy"] = 0.3
    line = {
        f"{group}/{key}": value
        for group, metrics in groups.items()
        for key, value in metrics.items()
    }
    return {"step": step, **line}
