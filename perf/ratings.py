"""Rules of the ratings' drift on played matches: python perf/ratings.py [--json FILE]

Replays the matches and births of the committed 4T+4S runs (recipes/runs/defaults/4t4s) under
several rules and prints for each, by seed, from step 11 on:

    older, children   how many points the rated difference student - teacher before a match is above
                      the one that the match shows, for students of more and of at most 10 steps
    log loss          of the student's predicted chance to win a game, beyond that of the match's
                      own share of wins, in nats a game
    replaced          solve rate of the student that the rule would replace less the mean of the
                      others, over the 5 steps before; and how many steps after its birth

The committed records have no matches. A teacher and a student with the same solve rate in a step
were matched. The share of games won is a cubic function of the solve rate, fitted to the means over
the role, which are recorded (residual .007; 64 games sample it with .06).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from azr_population.config.schema import EvolutionConfig
from azr_population.method.evolution import choose, inherited_rating
from azr_population.method.members import Outcome, RatingSystem, Roster

RUNS = Path(__file__).parents[1] / "recipes" / "runs" / "defaults" / "4t4s"
RESULTS = Path(__file__).parent / "results" / "ratings.json"
GAMES = 64
DRIFTS = {
    "TrueSkill's tau once a match": 25 / 300 / math.sqrt(GAMES),
    "a quarter of it a game": 25 / 1200,
    "half of it a game": 25 / 600,
    "TrueSkill's tau a game": 25 / 300,
}
CHILD = 10
"""Steps after its birth in which a student counts as a child, and after the start that are left
out."""
NORMAL = NormalDist()


def lines(path: Path) -> list[dict[str, Any]]:
    """The records in a JSONL file, compressed or not."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def fit_wins(runs: list[list[dict[str, Any]]]) -> np.poly1d:
    """The share of games on valid tasks that students win, as a function of their solve rate."""
    rows = [row for metrics in runs for row in metrics]
    valid = np.array([row["teacher/valid_frac"] for row in rows])
    wins = np.array([row["student/win_rate"] for row in rows])
    rates = [row["student/solve_rate"] for row in rows]
    return np.poly1d(np.polyfit(rates, (wins - (1 - valid)) / valid, 3))


def replay(folder: Path, tau: float, wins: np.poly1d, steps: int) -> dict[str, Any]:
    """The first `steps` steps of a run under a drift of `tau` a game."""
    system, roster = RatingSystem(tau), Roster.make(4, 4)
    config, order = EvolutionConfig(), np.random.default_rng(0)
    births: dict[int, list[dict[str, Any]]] = {}
    for birth in lines(folder / "lineage.jsonl"):
        births.setdefault(birth["step"], []).append(birth)
    errors: dict[bool, list[float]] = {True: [], False: []}
    losses, gaps, ages, history = [], [], [], []
    for row in lines(folder / "metrics.jsonl.gz")[:steps]:
        step, valid = row["step"], round(GAMES * row["teacher/valid_frac"])
        history.append({s.name: row[f"{s.name}/solve_rate"] for s in roster.students})
        for teacher, student in _pairs(row, roster):
            share = float(np.clip(wins(row[f"{student.name}/solve_rate"]), 0.01, 0.99))
            if step > CHILD:
                chance = system.win_probability(student.rating, teacher.rating)
                shown = math.sqrt(2) * 25 / 6 * NORMAL.inv_cdf(share)
                is_child = bool(student.generation) and step - student.born <= CHILD
                errors[is_child].append(student.rating.mu - teacher.rating.mu - shown)
                losses.append(
                    share * math.log(share / chance)
                    + (1 - share) * math.log((1 - share) / (1 - chance))
                )
            won = round(valid * share)
            games = [Outcome.STUDENT_WINS] * won + [Outcome.TEACHER_WINS] * (valid - won)
            games = [games[i] for i in order.permutation(valid)]
            games += [Outcome.INVALID] * (GAMES - valid)
            teacher.rating, student.rating = system.rate_match(
                teacher.rating, student.rating, games
            )
        roster.recenter_ratings()
        if step in births:
            (chosen,) = choose(config, roster.students, order, step)
            rates = {name: np.mean([h[name] for h in history[-5:]]) for name in history[-1]}
            others = [rate for name, rate in rates.items() if name != chosen.victim.name]
            gaps.append(rates[chosen.victim.name] - np.mean(others))
            ages.append(step - chosen.victim.born if chosen.victim.generation else 0)
            ratings = [
                inherited_rating([roster[name].rating for name in birth["parents"]])
                for birth in births[step]
            ]
            for birth, rating in zip(births[step], ratings, strict=True):
                child = roster[birth["child"]]
                child.rating, child.born, child.generation = rating, step, child.generation + 1
            roster.recenter_ratings()
    means = [float(np.mean(errors[is_child])) for is_child in (False, True)]
    return {"older": means[0], "children": means[1], "log_loss": float(np.mean(losses)),
            "replaced": float(np.mean(gaps)), "ages": ages}  # fmt: skip


def _pairs(row: dict[str, Any], roster: Roster) -> Iterator[tuple[Any, Any]]:
    """The step's matches: members with the same solve rate."""
    free = list(roster.students)
    for teacher in roster.teachers:
        rate = row[f"{teacher.name}/solve_rate"]
        student = next(s for s in free if row[f"{s.name}/solve_rate"] == rate)
        free.remove(student)
        yield teacher, student


def main() -> None:
    """Prints a line per rule; writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folders = sorted(options.runs.glob("seed_*"))
    wins = fit_wins([lines(folder / "metrics.jsonl.gz") for folder in folders])
    results: dict[str, Any] = {}
    for rule, tau in DRIFTS.items():
        seeds = [replay(folder, tau, wins, options.steps) for folder in folders]
        mean = {
            name: float(np.mean([s[name] for s in seeds])) for name in seeds[0] if name != "ages"
        }
        ages = sorted(Counter(age for seed in seeds for age in seed["ages"]).items())
        results[rule] = {"tau": tau, "mean": mean, "ages": dict(ages), "seeds": seeds}
        print(
            f"{rule:30s} older {mean['older']:+.2f}, children {mean['children']:+.2f}, difference "
            f"{mean['older'] - mean['children']:+.2f}; log loss {mean['log_loss']:.5f}; replaced "
            f"{100 * mean['replaced']:+.1f} points, ages (0: a founder) "
            + ", ".join(f"{age}: {count}" for age, count in ages),
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
