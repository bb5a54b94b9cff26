from azr_population.bases.nano.corpus import is_held_out
from azr_population.bases.nano.exam import LEVELS, exam
from azr_population.bases.nano.executor import run_function
from azr_population.domains.code.complexity import measure
from azr_population.domains.code.task import TaskType


def test_the_exam_is_fixed_held_out_and_graded():
    tasks = exam(20, seed=2605)
    assert tasks == exam(20, seed=2605) != exam(20, seed=2606)
    assert [task.type for task in tasks] == [type for type in TaskType for _ in range(20)]
    for task in tasks:
        assert is_held_out(task.program)
        assert run_function(task.program, list(task.inputs)) == list(task.outputs)
        assert len(task.inputs) == (6 if task.type == TaskType.CODE_F else 1)
    assert len({task.program for task in tasks if task.type == TaskType.CODE_O}) == 20
    sizes = [measure(task.program).ast_nodes for task in tasks]
    for start in (0, 20, 40):
        assert sum(sizes[start : start + 4]) < sum(sizes[start + 16 : start + 20])


def test_a_small_exam_spans_the_levels():
    assert len(exam(len(LEVELS), seed=1)) == 3 * len(LEVELS)


def test_a_type_has_the_same_tasks_whichever_others_there_are():
    whole = exam(5, seed=3)
    assert exam(5, 3, ["code_i", "code_o"]) == whole[:10]
    assert exam(5, 3, ["code_f"]) == whole[10:]
