"""The GPU's benchmark: a step of no time is refused, and no part changes what follows it."""

from types import SimpleNamespace

import pytest
from base_at_work import ATTEMPTS, Base
from drawn import described


def base(notes=None):
    """The measurements in a small shape on a CPU; figures go to `notes`."""
    note = ({} if notes is None else notes).__setitem__
    return Base(SimpleNamespace(device="cpu"), note, described("small"))


def with_times(measured, *times):
    """Makes calls take these seconds."""
    left = list(times)

    def seconds(call, repeats=1):
        call()
        return left.pop(0)

    measured.seconds = seconds


def test_a_step_is_the_difference_of_two_calls_after_a_warm_up():
    measured = base()
    _, _, short, long = measured.rows()
    tokens = []
    with_times(measured, 9.0, 1.0, 3.0)
    assert measured.step_seconds(tokens.append) == (9.0, 1.0, 3.0, 2.0 / (long - short))
    assert tokens == [long, short, long]


def test_a_step_that_takes_no_time_is_measured_again_and_then_refused():
    measured = base()
    with_times(measured, 9.0, 3.0, 3.0, 3.0, 1.0, 1.0, 3.0)
    assert measured.step_seconds(abs)[3] > 0
    with_times(measured, 9.0, *[3.0, 1.0] * ATTEMPTS)
    with pytest.raises(RuntimeError, match="new tokens took"):
        measured.step_seconds(abs)


def test_transformers_generate_warms_up_and_a_refused_step_leaves_no_figure():
    notes, calls = {}, []
    measured = base(notes)
    config = SimpleNamespace(_attn_implementation="ours")
    measured.model = SimpleNamespace(
        config=config, generate=lambda ids, **named: calls.append(named["max_new_tokens"])
    )
    _, _, short, long = measured.rows()
    with_times(measured, 9.0, 1.0, 3.0)
    measured.generate()
    assert calls == [long, short, long] and notes["generate, bare base"]["tokens/s"] > 0
    notes.clear()
    with_times(measured, 9.0, *[3.0, 1.0] * ATTEMPTS)
    with pytest.raises(RuntimeError):
        measured.generate()
    assert not notes and config._attn_implementation == "ours"


def test_the_memorys_learner_is_again_that_of_one_gpu():
    measured = base()
    parallel = []
    measured.write = lambda *arguments: parallel.append(measured.learner.parallel)
    measured.learner = SimpleNamespace(
        parallel=False,
        log_probs=lambda *arguments: parallel.append(measured.learner.parallel),
        update=lambda *arguments: 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        measured.memory()
    assert parallel == [True, True] and not measured.learner.parallel
