from __future__ import annotations

from azr_population.reports.examples import examples


def task(type: str, rate: float | None, nodes: int) -> dict[str, object]:
    return {"type": type, "solve_rate": rate, "ast_nodes": nodes}


def test_each_type_shows_its_extremes_once() -> None:
    tasks = [
        task("code_o", 0.0, 10),
        task("code_o", 1.0, 30),
        task("code_o", 0.5, 40),
        task("code_o", 1.0, 20),
        task("code_i", None, 5),
    ]
    assert [(why, tasks.index(shown)) for why, shown in examples(iter(tasks))] == [
        ("the first", 0),
        ("the latest", 3),
        ("the largest that every attempt solved", 1),
        ("the largest that some attempts solved", 2),
        ("the first", 4),
    ]


def test_nothing_and_odd_records() -> None:
    assert examples([]) == []
    assert len(examples([{}, {"solve_rate": "x"}])) == 2
