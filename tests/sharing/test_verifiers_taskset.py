"""The exported taskset, loaded and scored by the real `verifiers`."""

import asyncio
import sys

import pytest

from azr_population.sharing.tasks import distinct_tasks
from azr_population.sharing.verifiers_package import write_package

vf = pytest.importorskip("verifiers.v1", reason="needs verifiers: pip install verifiers")


def scored(task, reply):
    """What this last reply of a model is worth."""
    traced = vf.TraceTask(type=type(task).__name__, data=task.data)
    trace = vf.Trace.model_construct(task=traced, rewards={}, metrics={}, root_reply=reply)
    asyncio.run(task.score(trace))
    return {name: reward.value for name, reward in trace.rewards.items()}


def test_right_answers_are_worth_one(run, tmp_path, monkeypatch):
    from verifiers.v1.utils.loaders import load_taskset

    folder = tmp_path / "my-tasks"
    folder.mkdir()
    assert write_package(folder, folder.name, distinct_tasks(run)) == "my_tasks"
    monkeypatch.syspath_prepend(str(folder))
    output, abduction = list(load_taskset(vf.TasksetConfig(id="my_tasks")))
    assert "What does f return" in output.data.prompt and output.data.idx == 0
    assert scored(output, "It is\n```output\n2\n```") == {"right": 1.0}
    assert scored(output, "It is\n```output\n3\n```") == {"right": 0.0}
    assert scored(output, "2") == {"right": 0.0}
    assert scored(abduction, "```input\n1\n```") == {"right": 1.0}
    sys.modules.pop("my_tasks", None)
