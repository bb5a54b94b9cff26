"""Warnings from records: when they begin, of whom, and that sound runs have none."""

from types import SimpleNamespace

import pytest

from azr_population.domains.code.rules import REFUSALS
from azr_population.domains.code.source import NOT_FINITE
from azr_population.method.callbacks import Warn
from azr_population.method.phases import HELD_OUT
from azr_population.method.record import StepRecords
from azr_population.reading.run_data import RunData
from azr_population.referee import Reason
from azr_population.runs import RunDirectory
from azr_population.runs.meanings import INTERNAL_ERROR, MEANINGS, meaning
from azr_population.runs.run_warnings import REPLAY, Watch


def lines(metric, values, member="teacher_0"):
    return [{"step": step, f"{member}/{metric}": value} for step, value in enumerate(values, 1)]


def evals(*scores, member="student_0"):
    return [
        {"step": 10 * number, "member": member, "greedy": [1.0] * right + [0.0] * (100 - right)}
        for number, right in enumerate(scores, 1)
    ]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (lines("solve_rate", [0.5] * 20 + [0.02] * 30), (37, "teacher_0", "runaway")),
        (lines("solve_rate", [0.95] * 20, "agent_0"), (20, "agent_0", "runaway")),
        (lines("unique_frac", [0.9] * 10 + [0.2] * 20), (22, "teacher_0", "copies")),
        (lines("solve_rate", [0.0] * 19), None),
        (lines("solve_rate", [0.0] * 40, "student_0"), None),
        (lines("solve_rate", [0.0] * 40, "teacher"), (20, "teacher", "runaway")),
        (
            [
                {**row, "teacher_0/generation": 0}
                for row in lines("solve_rate", [0.0] * 40, "teacher")
            ],
            None,
        ),
        (lines("solve_rate", [0.3, 0.7] * 20), None),
        (lines("solve_rate", [None, "x", True] * 20), None),
    ],
)
def test_a_teacher_is_judged_by_its_last_twenty_steps(records, expected):
    found = [line[:3] for line in Watch().read(records)]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("scores", "step"),
    [((40, 60, 50, 30), 40), ((40, 60, 58, 70), None), ((60, 50), None), ((30,), None)],
)
def test_a_student_forgets_when_its_eval_falls_by_more_than_noise(scores, step):
    found = Watch().read([], evals(*scores))
    assert [line[:3] for line in found] == ([(step, "student_0", "forgets")] if step else [])


def test_tasks_that_could_not_be_judged_are_left_out_of_both_evals():
    def rows(*greedy):
        return [{"step": 10 * n, "member": "student_0", "generation": 0, "greedy": scores}
                for n, scores in enumerate(greedy, 1)]  # fmt: skip

    many, few = [1.0] * 60 + [0.0] * 40, [1.0] * 20 + [0.0] * 79 + [None]
    (warning,) = Watch().read([], rows(many, few))
    assert warning[:3] == (20, "student_0", "forgets")
    # The same answers but for one task in each: no neighbours are paired.
    alternating = [1.0, 0.0] * 50
    assert not Watch().read([], rows([None, *alternating[1:]], [*alternating[:-1], None]))


def test_a_child_is_judged_by_its_own_records():
    parent, child = evals(90, 88), evals(50, 20)
    rows = [{**row, "generation": 0} for row in parent] + [
        {**row, "generation": 1, "step": row["step"] + 20} for row in child
    ]
    assert [line[:3] for line in Watch().read([], rows)] == [(40, "student_0", "forgets")]
    metrics = [
        {**row, "teacher_0/generation": row["step"] // 30}
        for row in lines("solve_rate", [0.02] * 30 + [0.104] * 30 + [0.02] * 40)
    ]  # the line of a birth, steps 30, 60 and 90, has results of the member that is replaced
    found = [line[:3] for line in Watch().read(metrics)]
    assert found == [(20, "teacher_0", "runaway"), (80, "teacher_0", "runaway")]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("population: {replay_fraction: 0.0}", True),
        ("population: {replay_fraction: 0.5}", False),
        ("azr: {}\npopulation: {}", False),
    ],
)
def test_replay_is_named_to_a_run_that_forgets_and_has_none(tmp_path, config, named):
    run = RunDirectory(tmp_path / "run")
    run.create(config, {})
    run.append("metrics", lines("solve_rate", [0.01] * 20))
    run.append("evals", evals(60, 30))
    forgets, runaway = sorted(RunData(run.path).warnings, key=lambda warning: warning.kind)
    assert (REPLAY in forgets.text) == named and REPLAY not in runaway.text
    assert "1% solved" in runaway.text


def test_proposals_that_could_not_be_judged_are_named_once():
    records = [{"step": step, "reason/ok": 60.0} for step in range(1, 9)]
    records[3] |= {"reason/internal_error": 3.0, "reason/lost": 1.0}
    records[5] |= {"reason/lost": 2.0}
    (warning,) = Watch().read(records)
    assert warning[:3] == (4, "", "unjudged") and warning.text.startswith("4 proposals")


def test_a_run_notes_a_warning_in_its_step_also_behind_a_resume(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.create("seed: 1\n", {})
    *before, last = lines("solve_rate", [0.01] * 20)
    run.append("metrics", before)
    warn, notes = Warn(run, uses_replay=True), []
    for line in (last, {**last, "step": 21}):
        records = StepRecords(line, [], [], [], [])
        warn.recorded(SimpleNamespace(step=line["step"]), [], records)
        notes.append(len(records.notes))
    assert notes == [1, 0]
    run.append("evals", evals(60))
    records = StepRecords({"step": 22}, [], [], [], [], evals(60, 30)[1:])
    warn = Warn(run, uses_replay=True)
    warn.recorded(SimpleNamespace(step=22), [], records)
    assert len(records.notes) == 1 and "forgets" in records.notes[0]


def test_every_word_that_a_record_can_hold_has_a_meaning():
    words = {str(reason) for reason in Reason} | set(REFUSALS)
    words |= {HELD_OUT, INTERNAL_ERROR, NOT_FINITE}
    words |= {"unparsable", "invalid", "program_too_long", "output_too_long", "too_few_inputs"}
    assert set(MEANINGS) == words


def test_a_completion_that_was_cut_off_says_so():
    assert meaning("unparsable", False).startswith(MEANINGS["unparsable"] + " (")
    assert meaning("unparsable") == meaning("unparsable", None) == MEANINGS["unparsable"]
    assert meaning("<b>", False) == ""
