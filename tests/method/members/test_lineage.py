from __future__ import annotations

import json

from azr_population.method.members import LineageRecord

RECORD = LineageRecord(
    step=10,
    child="student_2",
    generation=1,
    parents=("student_0", "student_3"),
    operator="svd_subspace",
    seed=7,
    mu=24.5,
    sigma=4.2,
    options={"k": 4},
    step_sizes={"full_gaussian.eps": 0.1},
    victim_fitness=float("-inf"),
    parent_fitness=(20.0, 18.0),
)


def test_the_line_has_the_documented_fields_and_is_strict_json() -> None:
    line = json.dumps(RECORD.to_json(), allow_nan=False)
    assert json.loads(line) == {
        "step": 10,
        "child": "student_2",
        "generation": 1,
        "parents": ["student_0", "student_3"],
        "operator": "svd_subspace",
        "options": {"k": 4},
        "step_sizes": {"full_gaussian.eps": 0.1},
        "seed": 7,
        "fitness": {"victim": None, "parents": [20.0, 18.0]},
        "mu": 24.5,
        "sigma": 4.2,
    }
