import json

import numpy as np
import pytest

from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.task import TaskBuffer


def task(n, type=TaskType.CODE_O):
    return Task(type, f"def f(x):\n    return x + {n}", ("1",), (str(n + 1),))


def filled(count, capacity, type=TaskType.CODE_O, seed=0):
    buffer = TaskBuffer(capacity, seed)
    for n in range(count):
        buffer.add(task(n, type))
    return buffer


def test_equal_tasks_count_once_and_the_capacity_holds():
    buffer = TaskBuffer(capacity=2)
    for n in (1, 2, 1, 3, 4):
        buffer.add(task(n))
    assert len(buffer) == len(list(buffer)) == 2
    assert [task(n) in buffer for n in range(6)].count(True) == 2


@pytest.mark.parametrize("again", [0, 1, 39], ids=["each once", "one in turn", "one in each step"])
def test_every_task_has_the_same_chance_to_stay_however_often_it_comes(again):
    stayed = np.zeros(40)
    for seed in range(400):
        buffer = TaskBuffer(10, seed)
        for n in range(40):
            buffer.add(task(n))
            if again and n % (40 - again) == 0:
                buffer.add(task(3))
        stayed += [task(n) in buffer for n in range(40)]
    # 400 draws with p = 1/4 each: a standard deviation of 8.7.
    assert abs(stayed - 100).max() < 4 * 8.7


def test_sampling_is_without_repeats_and_seeded_and_by_type_where_asked():
    buffer = filled(20, 100)
    for n in range(20):
        buffer.add(task(n, TaskType.CODE_I))
    first = buffer.sample(6, np.random.default_rng(3), TaskType.CODE_I)
    assert len(set(first)) == 6 and all(t.type == TaskType.CODE_I for t in first)
    assert first == buffer.sample(6, np.random.default_rng(3), TaskType.CODE_I)
    assert len(buffer.sample(99, np.random.default_rng(0), TaskType.CODE_O)) == 20
    assert len(buffer.sample(99, np.random.default_rng(0))) == 40
    assert buffer.sample(3, np.random.default_rng(0), TaskType.CODE_F) == []


def test_a_buffer_goes_on_after_a_round_trip_through_json():
    buffer, copy = filled(5, 3), TaskBuffer(capacity=3)
    copy.load_state(json.loads(json.dumps(buffer.state())))
    for each in (buffer, copy):
        for n in range(9, 20):
            each.add(task(n))
    assert set(copy) == set(buffer)


def test_a_stored_buffer_is_checked():
    stored = filled(3, 3).state()
    for damaged in (stored + stored[:1], [{**stored[0], "program": 5}], [*stored, {}]):
        with pytest.raises(ValueError):
            TaskBuffer(5).load_state(damaged)
    with pytest.raises(ValueError):
        TaskBuffer(2).load_state(stored)
