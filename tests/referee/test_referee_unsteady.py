"""An output with one bit of chance, a clock or an address is found; similar honest ones pass."""

from __future__ import annotations

import pytest
from unsteady import ADDRESSES, CHANCE, CLOCKS, FIXED, SHOWN, STEADY

from azr_population.referee import Program, Reason, Referee, RefereeSettings

SETTINGS = {
    "shared": RefereeSettings(workers=1),
    "addresses at random": RefereeSettings(workers=1, leave_out=("fixed addresses",)),
}


@pytest.fixture(scope="module", params=SETTINGS)
def each(request):
    """A referee of each kind."""
    with Referee(SETTINGS[request.param]) as referee:
        yield referee


def programs(sources: dict[str, str]) -> list[Program]:
    return [Program(source, ("[3, 1, 2]",)) for source in sources.values()]


def reasons(referee: Referee, sources: dict[str, str]) -> dict[str, Reason]:
    executions = referee.check(programs(sources))
    return {name: execution.reason for name, execution in zip(sources, executions, strict=True)}


@pytest.mark.parametrize(
    "corpus", [CHANCE, CLOCKS, ADDRESSES], ids=["chance", "clocks", "addresses"]
)
def test_outputs_that_show_them_are_nondeterministic(each, corpus):
    assert reasons(each, corpus) == dict.fromkeys(corpus, Reason.NONDETERMINISTIC)


def test_chance_in_the_input_is_chance():
    with Referee(RefereeSettings(workers=1)) as referee:
        inputs = "__import__('random').random() < 0.5", "__import__('datetime').date.today().year"
        executions = referee.check([Program("def f(x): return x", (text,)) for text in inputs])
    assert [execution.reason for execution in executions] == [Reason.NONDETERMINISTIC] * 2


def test_an_output_shows_no_address(each):
    assert not {
        name: reason
        for name, reason in reasons(each, SHOWN).items()
        if reason not in (Reason.NOT_LITERAL, Reason.NONDETERMINISTIC)
    }


def test_honest_programs_that_look_similar_pass(each):
    assert reasons(each, STEADY) == dict.fromkeys(STEADY, Reason.OK)


def test_fixed_addresses_are_the_same_in_every_worker_and_on_every_start():
    outputs = set()
    for settings in [SETTINGS["shared"]] * 2:
        with Referee(settings) as referee:
            if ("fixed addresses", True) not in [layer[:2] for layer in referee.layers]:
                pytest.skip("this system does not let a process fix its addresses")
            executions = referee.check(programs(FIXED))
            assert all(execution.valid for execution in executions)
            outputs.add(tuple(execution.outputs for execution in executions))
    assert len(outputs) == 1


def test_random_addresses_differ_between_the_two_runs():
    # The hash of a builtin mixes two addresses whose random bits partly cancel out: two workers
    # agree on it once in thirty starts.
    hashes = []
    for _ in range(5):
        with Referee(SETTINGS["addresses at random"]) as referee:
            executions = reasons(referee, FIXED)
            assert len(referee._workers) == 2
        hashes.append(executions["hash of a builtin"])
        # The others are of the interpreter's own data, which lies still unless it is built to move.
        assert set(executions.values()) <= {Reason.NONDETERMINISTIC, Reason.OK}
    assert Reason.NONDETERMINISTIC in hashes


def test_a_verdict_on_chance_is_the_same_every_time():
    verdicts = set()
    for _ in range(3):
        with Referee(RefereeSettings(workers=2)) as referee:
            verdicts.add(tuple(referee.check(programs({**CHANCE, **CLOCKS, **STEADY}))))
    assert len(verdicts) == 1


HONEST = {
    "hex": ("def f(x):\n    return f'found at {hex(x)}'", "1234567890", "'found at 0x499602d2'"),
    "a global called returns": (
        "def f(x):\n    global returns\n    if 'returns' not in globals():\n        returns = 0\n"
        "    returns += x\n    return returns",
        "5",
        "5",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_resembles_an_address_or_our_own_name_passes(each, name):
    source, argument, output = HONEST[name]
    (execution,) = each.check([Program(source, (argument,))])
    assert (execution.reason, execution.outputs) == (Reason.OK, (output,))
