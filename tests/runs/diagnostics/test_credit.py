from __future__ import annotations

from collections.abc import Callable

from azr_population.runs.diagnostics import operator_credit, ready_of
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def test_credit_is_what_the_run_noted_at_its_last_replacement(write: Write) -> None:
    dare, ties = {"born": 2, "passed": 1}, {"born": 3, "passed": None}
    run = write(
        metrics=[
            {"step": 5, "operators": {"dare": {"born": 1}}},
            {"step": 10, "operators": {"dare": dare, "ties": ties}},
            {"step": 11},
        ]
    )
    assert operator_credit(run) == [{"operator": "ties", **ties}, {"operator": "dare", **dare}]


def test_without_records_there_is_no_credit(write: Write) -> None:
    assert operator_credit(write()) == []
    assert operator_credit(write(metrics=[{"step": 5, "operators": {"dare": 3}}])) == []


def test_a_child_is_ready_by_the_settings_of_either_host(write: Write) -> None:
    assert ready_of(write("evolution: {grace_period: 8}", "local")) == 8
    assert ready_of(write("population: {evolution: {grace_period: 6}}", "azr")) == 6
    assert ready_of(write("seed: 1", "without")) == 0
