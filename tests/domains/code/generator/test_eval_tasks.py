from collections import Counter

from constructs import shape

from azr_population.domains.code.complexity import measures
from azr_population.domains.code.generator.eval_tasks import draw_eval_tasks, strata
from azr_population.domains.code.generator.programs import run_function
from azr_population.domains.code.generator.tail import BANDS, CONSTRUCTS
from azr_population.domains.code.task_types import TaskType
from azr_population.domains.domain import is_held_out


def test_the_eval_is_fixed_held_out_and_graded():
    tasks = draw_eval_tasks(20, seed=2605)
    assert tasks == draw_eval_tasks(20, seed=2605) != draw_eval_tasks(20, seed=2606)
    assert [task.type for task in tasks] == [type for type in TaskType for _ in range(20)]
    for task in tasks:
        assert is_held_out(task.program)
        assert run_function(task.program, list(task.inputs)) == list(task.outputs)
        assert len(task.inputs) == (6 if task.type == TaskType.CODE_F else 1)
    assert len(set(tasks)) == 60
    core = strata(20).count("core")
    programs = [task.program for task in tasks if task.type == TaskType.CODE_O]
    assert len(set(programs[:core])) == core
    sizes = [measures(task.program)["ast_nodes"] for task in tasks]
    for start in (0, 20, 40):
        assert sum(sizes[start : start + 2]) < sum(sizes[start + core - 2 : start + core])


def test_the_tail_is_half_of_it_and_its_constructs_take_turns():
    groups = strata(60)
    assert Counter(groups) == {"core": 20, **dict.fromkeys(BANDS, 10), "compositions": 10}
    tasks = draw_eval_tasks(60, seed=4, types=["code_o"])
    for task, group in zip(tasks, groups, strict=True):
        held = sum(shape(construct).search(task.program) is not None for construct in CONSTRUCTS)
        if group in BANDS:
            assert any(shape(c).search(task.program) for c in CONSTRUCTS[BANDS[group]]), task
        assert held >= {"core": 0, "compositions": 2}.get(group, 1), task.program


def test_a_small_eval_has_every_part_of_the_tail():
    assert strata(6) == ["core", "core", *BANDS, "compositions"]
    assert len(draw_eval_tasks(6, seed=1)) == 18


def test_a_type_has_the_same_tasks_whichever_others_there_are():
    all_types = draw_eval_tasks(5, seed=3)
    assert draw_eval_tasks(5, 3, ["code_i", "code_o"]) == all_types[:10]
    assert draw_eval_tasks(5, 3, ["code_f"]) == all_types[10:]
