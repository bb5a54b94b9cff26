import json

import numpy as np

from azr_population.domains.buffer import TaskBuffer
from azr_population.domains.code.task import Task, TaskType


def task(n, type=TaskType.CODE_O):
    return Task(type, f"def f(x):\n    return x + {n}", ("1",), (str(n + 1),))


def test_the_oldest_goes_first_and_equal_tasks_count_once():
    buffer = TaskBuffer(capacity=2)
    for n in (1, 2, 1, 3):
        buffer.add(task(n))
    assert [n for n in (1, 2, 3) if task(n) in buffer] == [1, 3]


def test_sampling_is_by_type_without_repeats_and_seeded():
    buffer = TaskBuffer(capacity=100)
    for n in range(20):
        buffer.add(task(n))
        buffer.add(task(n, TaskType.CODE_I))
    one = buffer.sample(TaskType.CODE_I, 6, np.random.default_rng(3))
    assert len(set(one)) == 6 and all(t.type == TaskType.CODE_I for t in one)
    assert one == buffer.sample(TaskType.CODE_I, 6, np.random.default_rng(3))
    assert len(buffer.sample(TaskType.CODE_O, 99, np.random.default_rng(0))) == 20
    assert buffer.sample(TaskType.CODE_F, 3, np.random.default_rng(0)) == []


def test_round_trip_through_json_keeps_the_order():
    buffer = TaskBuffer(capacity=3)
    for n in range(3):
        buffer.add(task(n))
    copy = TaskBuffer(capacity=3)
    copy.load_list(json.loads(json.dumps(buffer.to_list())))
    copy.add(task(9))
    assert task(0) not in copy and task(1) in copy
