"""What a run says first, from records that are made here."""

import json
import math
import shutil
from types import SimpleNamespace

import pytest

from azr_population.analysis.changes import Change, measured_changes
from azr_population.analysis.statistics import Estimate
from azr_population.analysis.summary import _held_out, _programs, summary
from azr_population.reading.run_data import RunData

TASKS = 100


def written(tmp_path, *, last=60, evals=(), births=(), population="4t4s", metrics=None):
    """A run directory with these evals, (step, member, generation, tasks solved), and births."""
    folder = tmp_path / "run"
    (folder / "members" / "best").mkdir(parents=True)
    (folder / "config.yaml").write_text(
        f"run: {{steps: {last}}}\npopulation: {{name: {population}, teachers: 1, students: 2}}\n"
    )
    names = ("teacher_0", "student_0", "student_1")
    lines = {
        step: {"step": step, "reason/ok": 5.0, **{f"{name}/mu": 25.0 for name in names}}
        for step in range(1, last + 1)
    }
    rows = []
    for step, member, generation, solved in evals:
        greedy = [float(task < solved) for task in range(TASKS)]
        rows.append({"step": step, "member": member, "generation": generation, "greedy": greedy})
        if step:
            lines[step][f"{member}/eval/greedy"] = solved / TASKS
    for name, of in {
        "metrics": metrics or lines.values(),
        "evals": rows,
        "lineage": births,
    }.items():
        text = "".join(json.dumps(row) + "\n" for row in of)
        (folder / f"{name}.jsonl").write_text(text)
    return RunData(folder)


def said(run):
    return summary(run, measured_changes(run, run.last))


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((30, 60), "Students got better at held-out tasks: 30% to 60%, +30.0 points"),
        ((60, 30), "Students got worse at held-out tasks: 60% to 30%, -30.0 points"),
        ((30, 31), "No change of students at held-out tasks is shown: 30% to 31%, +1.0 points"),
    ],
)
def test_the_first_sentence_says_whether_students_got_better(tmp_path, ends, words):
    first, late = ends
    run = written(tmp_path, evals=[(0, "student_0", 0, first), (60, "student_0", 0, late)])
    assert said(run).students.startswith(words)
    assert "few" not in said(run).students


def test_page_and_terminal_lead_with_what_got_better(tmp_path):
    run = written(tmp_path, evals=[(0, "student_0", 0, 30), (60, "student_0", 0, 31)])
    grew = Estimate(2.0, 1.0, 3.0, (6, 6))
    changes = measured_changes(run, run.last)
    changes["lines"] = Change(6.0, 8.0, grew)
    changes["solve_rate"] = Change(0.8, 0.7, Estimate(-0.1, -0.2, 0.0, (6, 6)))
    end = summary(run, changes)
    assert end.sentences[0].startswith("Programs grew: 6.0 to 8.0 lines")
    assert end.sentences[1].startswith("No change of students")
    assert end.lines[: len(end.sentences)] == end.sentences


def test_without_two_evals_it_is_not_known_and_few_steps_are_said_to_be_few(tmp_path):
    lines = [
        {"step": step, "reason/ok": 5.0, "student_0/mu": 25.0, "student_0/sigma": 5.0}
        for step in range(1, 11)
    ]
    run = written(tmp_path, last=10, metrics=lines)
    (run.path / "tasks.jsonl").write_text(
        "".join(
            json.dumps({"step": step, "solve_rate": 0.2 + 0.05 * step, "nodes": 9}) + "\n"
            for step in range(1, 11)
        )
    )
    found = said(RunData(run.path))
    assert found.students.startswith("Whether students got better is not measured")
    assert "(first and last step)" in found.students and "10 steps are few" in found.students
    assert found.best.startswith("Highest rated student (no eval): student_0, in ")
    assert found.best.endswith("members/student_0.")


def test_the_best_member_is_that_of_the_best_eval_and_where_it_lies_is_said(tmp_path):
    evals = [(30, "student_0", 0, 50), (30, "student_1", 0, 55), (60, "student_0", 0, 52)]
    run = written(tmp_path, evals=evals)
    best = said(run).best
    assert best.startswith("Best member: student_1 at step 30, 55.0% of held-out tasks")
    assert best.endswith(f"in {run.path}/members/best.")
    # Inside AZR it is the best at AZR's validation.
    run = written(tmp_path / "azr")
    rows = [
        {"step": step, "member": name, "shares": {"math": math, "code": 0.5}}
        for step, name, math in ((20, "student_1", 0.7), (40, "student_0", 0.7), (60, "odd", None))
    ]
    run.directory.append("validations", rows)
    assert said(run).best.startswith("Best member: student_1 at step 20, 60.0% of AZR's validation")


@pytest.mark.parametrize(
    ("child", "verdict"),
    [
        (80, ": 1 better, none worse, none not"),
        (20, "none better, 1 worse"),
        (50, "none worse, 1 not shown"),
    ],
)
def test_a_child_is_held_against_its_parent_at_their_first_common_eval(tmp_path, child, verdict):
    birth = {"step": 20, "child": "student_1", "parents": ["student_0"], "generation": 1}
    evals = [(20, "student_1", 0, 99), (40, "student_0", 0, 50), (40, "student_1", 1, child)]
    run = written(tmp_path, evals=evals, births=[birth | {"operator": "dare"}])
    evolution = said(run).evolution
    assert evolution.startswith("Evolution: 1 child, 1 tested against the parent")
    assert verdict in evolution


def test_children_that_no_eval_saw_are_not_judged(tmp_path):
    birth = {"step": 60, "child": "student_1", "parents": ["student_0"], "generation": 1}
    run = written(tmp_path, births=[birth | {"operator": "dare"}])
    assert said(run).evolution == "Evolution: 1 child; none was tested against its parent."
    assert said(written(tmp_path / "none")).evolution == "Evolution: nobody was replaced."


def test_commands_go_on_with_the_run_and_compare_it_with_one_beside_it(tmp_path):
    run = written(tmp_path)
    play, resume = said(run).next
    assert play == f"azr-population play {run.path}" and resume.endswith("run.steps=120")
    other = shutil.copytree(run.path, tmp_path / "the other")
    for no_run in (".hydra", "settings"):
        (tmp_path / no_run).mkdir()
        shutil.copy(run.path / "config.yaml", tmp_path / no_run)
    assert said(run).next[2:] == [f"azr-population compare {run.path} '{other}'"]


def test_a_run_without_a_valid_proposal_says_that_alone(tmp_path):
    run = written(tmp_path, metrics=[{"step": 1, "reason/syntax_error": 7.0}])
    found = said(run)
    assert found.wrong.startswith("None of 7 proposals is a valid task")
    assert found.lines == []


def change(first, last, low, high):
    return Change(first, last, Estimate(last - first, low, high, (9,)))


def test_held_out_groups_are_told_in_their_order_and_what_is_always_or_never_solved_is_counted():
    names = ("shallow/01", "shallow/06_statements", "deep/07", "deep/10", "deep/11", "deep/12")
    scores = ((1.0, 1.0), (1.0, 0.9), (0.75, 0.8), (0.0, 0.05), (0.0, 0.0), (0.0, 0.0))
    lines = [
        {"eval/greedy": 0.5, "eval/greedy/deep": 0.4}
        | {f"eval/greedy/{name}": pair[end] for name, pair in zip(names, scores, strict=True)}
        for end in (0, 1)
    ]
    told = _held_out(SimpleNamespace(lines=[lines[0], {"step": 2}, lines[1]]))
    assert told == (
        "Held-out tasks: 6 statements 100% to 90%, 7 75% to 80%, 10 0% to 5%, "
        "1 others 100% throughout, 2 others 0% throughout."
    )
    assert _held_out(SimpleNamespace(lines=lines[:1])) == ""
    lines[1]["eval/greedy/deep/10"] = None
    assert ", 10 " not in _held_out(SimpleNamespace(lines=lines))


def test_programs_grow_only_beyond_noise():
    solved = change(0.75, 0.67, -0.2, 0.1)
    grown = _programs({"lines": change(6.9, 8.1, 0.6, 1.8), "solve_rate": solved})
    assert grown.startswith("Programs grew: 6.9 to 8.1 lines, +1.2")
    assert "75% to 67% of the attempts" in grown
    same = _programs({"lines": change(6.9, 7.1, -0.6, 1.0), "solve_rate": solved})
    assert same.startswith("That programs grew is not shown: 6.9 to 7.1 lines")
    few = _programs({"lines": change(7.1, 6.5, math.nan, math.nan), "solve_rate": solved})
    assert "7.1 to 6.5 lines, -0.600 (no interval)" in few
    assert _programs({"solve_rate": solved}) == ""


@pytest.mark.parametrize(
    ("births", "verdict"),
    [(1, ": 1 better, none worse, none not"), (6, "none better, none worse, 6 not")],
)
def test_children_are_one_family_of_tests(tmp_path, births, verdict):
    """A child that solves 6 tasks of 100 more than its parent: p is .014 alone."""
    steps = range(10, 10 * births + 1, 10)
    lineage = [
        {"step": step - 5, "child": "student_1", "parents": ["student_0"], "generation": number}
        for number, step in enumerate(steps, 1)
    ]
    evals = [(step, "student_0", 0, 50) for step in steps]
    evals += [(step, "student_1", n, 56 if n == 1 else 51) for n, step in enumerate(steps, 1)]
    evolution = said(written(tmp_path, evals=evals, births=lineage)).evolution
    assert f"{births} tested against the parent" in evolution and verdict in evolution
