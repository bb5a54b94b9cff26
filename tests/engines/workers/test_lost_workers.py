"""Errors of workers as the driver raises them; Ray is installed and does not run."""

import socket
from types import SimpleNamespace

import pytest

from azr_population.errors import UserError

NOBODY = SimpleNamespace(workers=[])
"""A group without workers, so that none is asked for a sign of life."""


def raised(cause):
    """What Ray's driver raises for an error of a worker."""
    exceptions = pytest.importorskip("ray.exceptions", reason="ray is not installed (extra: verl)")
    error = exceptions.RayTaskError(
        "generate", f"Traceback (most recent call last):\n{cause!r}", cause, "ray::", 1, "127.0.0.1"
    )
    return error.as_instanceof_cause()


def test_an_error_of_the_user_is_raised_as_the_worker_raised_it():
    error = raised(UserError("lora.rank=600: vLLM takes at most 512"))
    assert isinstance(error, UserError) and "\n" in str(error)
    from azr_population.engines.workers.placement import watched

    with pytest.raises(UserError) as caught, watched(SimpleNamespace(), "resume"):
        raise error
    assert str(caught.value) == "lora.rank=600: vLLM takes at most 512"


def test_other_errors_of_living_workers_are_raised_as_they_are(monkeypatch):
    error = raised(ValueError("no"))
    from azr_population.engines.workers import placement

    monkeypatch.setattr(placement.ray, "wait", lambda *signs, **options: None)
    with pytest.raises(ValueError) as caught, placement.watched(NOBODY, "resume"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_ray_that_is_not_there_is_told_at_once(monkeypatch, scheme):
    pytest.importorskip("ray", reason="ray is not installed (extra: verl)")
    from azr_population.engines.workers import ray_engine

    monkeypatch.setattr(ray_engine.ray, "init", lambda **_: pytest.fail("Ray tries for minutes"))
    with socket.socket() as free:  # bound, and nobody listens
        free.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with (
            pytest.raises(UserError, match=f"RAY_ADDRESS={address} .*refused") as caught,
            ray_engine.ray_engine(None, 1, "run"),
        ):
            pass
    assert "\n" not in str(caught.value)


def test_without_an_address_a_ray_of_our_own_is_started(monkeypatch):
    """And none is joined that a `ray start` has left running here."""
    pytest.importorskip("ray", reason="ray is not installed (extra: verl)")
    from azr_population.engines.workers import ray_engine

    started = []

    def init(**options):
        started.append(options)
        raise RuntimeError("no")

    monkeypatch.setattr(ray_engine.ray, "init", init)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UserError, match="Ray does not start"), ray_engine.ray_engine(None, 1, "r"):
        pass
    assert started[0]["address"] == "local" and started[0]["num_cpus"]
