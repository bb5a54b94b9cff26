import json

import numpy as np

from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.task import TaskBuffer


def task(n, type=TaskType.CODE_O):
    return Task(type, f"def f(x):\n    return x + {n}", ("1",), (str(n + 1),))


def filled(count, capacity, type=TaskType.CODE_O, seed=0):
    buffer, generator = TaskBuffer(capacity), np.random.default_rng(seed)
    for n in range(count):
        buffer.add(task(n, type), generator)
    return buffer


def test_equal_tasks_count_once_and_the_capacity_holds():
    buffer = TaskBuffer(capacity=2)
    for n in (1, 2, 1, 3, 4):
        buffer.add(task(n), np.random.default_rng(n))
    assert len(buffer) == len(list(buffer)) == 2
    assert buffer.added == 4
    assert [task(n) in buffer for n in range(6)].count(True) == 2


def test_every_task_has_the_same_chance_to_stay():
    stayed = np.zeros(40)
    for seed in range(400):
        stayed += [task(n) in buffer for buffer in [filled(40, 10, seed=seed)] for n in range(40)]
    # 400 draws with p = 1/4 each: a standard deviation of 8.7.
    assert abs(stayed - 100).max() < 4 * 8.7


def test_sampling_is_without_repeats_and_seeded_and_by_type_where_asked():
    buffer, generator = filled(20, 100), np.random.default_rng(1)
    for n in range(20):
        buffer.add(task(n, TaskType.CODE_I), generator)
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
            each.add(task(n), np.random.default_rng(n))
    assert list(copy) == list(buffer) and copy.added == buffer.added
