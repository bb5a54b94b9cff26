from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from random_adapters import dense, random_adapter, relative_error, same
from refusals import refuses

from azr_population.errors import UserError
from azr_population.weights import breeding
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.breeding import breed, dry_run, get_operator
from azr_population.weights.operator import OPERATORS, Operator

PARENTS = [random_adapter(0), random_adapter(1)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_operators_are_drawn_by_weight() -> None:
    mix = {"full_gaussian": 3.0, "layer_wise": 1.0, "dare": 0.0}
    generator = seeded()
    drawn = Counter(breed(mix, PARENTS, generator).operator for _ in range(400))
    assert drawn.keys() == {"full_gaussian", "layer_wise"}
    assert 260 < drawn["full_gaussian"] < 340


def test_the_same_seed_breeds_the_same_child() -> None:
    mix = {"full_gaussian": 1.0, "dare": 1.0, "component_masking": 1.0}
    one, two = breed(mix, PARENTS, seeded(3)), breed(mix, PARENTS, seeded(3))
    assert one.operator == two.operator and same(one.adapter, two.adapter)


def test_options_used_are_told() -> None:
    child = breed({"dare": 1.0}, PARENTS, seeded(), {"dare": {"p": 0.5}})
    assert child == (child.adapter, "dare", {"p": 0.5}, {})
    child = breed({"full_gaussian": 1.0}, PARENTS, seeded())
    assert child[1:] == ("full_gaussian", {"eps": 0.15}, {"full_gaussian.eps": 0.15})


def test_options_of_an_operator_hold_in_sequences_too() -> None:
    name = "dare+full_gaussian"
    options = {"dare": {"p": 0.5}, "full_gaussian": {"eps": 0.3}, name: {"full_gaussian.eps": 0.2}}
    child = breed({name: 1.0}, PARENTS, seeded(), options)
    assert child.options == {"dare.p": 0.5, "full_gaussian.eps": 0.2}
    assert child.step_sizes == {"full_gaussian.eps": 0.2}


def test_crossovers_are_left_out_when_there_is_one_parent() -> None:
    mix = {"dare": 100.0, "full_gaussian": 1.0}
    assert {breed(mix, PARENTS[:1], seeded(s)).operator for s in range(9)} == {"full_gaussian"}
    with refuses("1 parents"):
        breed({"dare": 1.0}, PARENTS[:1], seeded())


@pytest.mark.parametrize("weights", [{}, {"dare": 0.0}, {"dare": -1.0}, {"dare": float("nan")}])
def test_weights_that_leave_nothing(weights: dict[str, float]) -> None:
    with pytest.raises(UserError):
        breed(weights, PARENTS, seeded())


def test_a_sequence_is_one_operator_after_the_other() -> None:
    name = "svd_subspace+full_gaussian"
    child = breed({name: 1.0}, PARENTS, seeded(), {name: {"full_gaussian.eps": 0.0}})
    assert child.operator == name
    assert child.options == {"full_gaussian.eps": 0.0}
    generator = seeded()
    torch.multinomial(torch.ones(1, dtype=torch.float64), 1, generator=generator)
    crossed = get_operator("svd_subspace")(PARENTS, generator)
    for layer in crossed.factors:
        assert relative_error(dense(child.adapter, layer), dense(crossed, layer)) <= 1e-6
    noisy = breed({name: 1.0}, PARENTS, seeded())
    assert not same(noisy.adapter, child.adapter)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("full_gaussian+dare", "only come first"),
        ("full_gaussian+full_gaussian", "only once"),
        ("dare+nonsense", "operator=nonsense is unknown"),
    ],
)
def test_sequences_that_make_no_sense(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        get_operator(name)


def test_unknown_option_of_a_sequence() -> None:
    with refuses("full_gaussian.eps"):
        get_operator("dare+full_gaussian").resolve({"eps": 0.1})


def test_children_that_are_not_finite_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def sometimes(parents: list[Adapter], generator: torch.Generator) -> Adapter:
        calls.append(1)
        child = random_adapter(0)
        if len(calls) < 3:
            child.factors["q_proj"].B[0, 0] = math.inf
        return child

    real = OPERATORS.find("layer_wise")
    flawed = replace(real.function, function=sometimes)
    monkeypatch.setitem(OPERATORS._entries, "layer_wise", replace(real, function=flawed))
    child = breed({"layer_wise": 1.0}, PARENTS, seeded())
    assert len(calls) == 3 and breeding.is_finite(child.adapter)
    calls.extend([1] * -100)


def test_breeding_gives_up_on_parents_that_cannot_have_finite_children() -> None:
    huge = {
        name: Factors(pair.A.half(), torch.full_like(pair.B, 65504.0).half())
        for name, pair in PARENTS[0].factors.items()
    }
    parent = Adapter(PARENTS[0].spec, huge)
    name = "svd_structured"
    with refuses("8 children"):
        breed({name: 1.0}, [parent], seeded(), {name: {"eps": 1.0}})


def test_large_but_finite_values_are_finite() -> None:
    huge = Factors(torch.full((2, 4), 3e38), torch.full((4, 2), 3e38))
    assert breeding.is_finite(Adapter(PARENTS[0].spec, {"layer": huge}))
    huge.A[0, 0] = math.nan
    assert not breeding.is_finite(Adapter(PARENTS[0].spec, {"layer": huge}))


def test_step_sizes_adapt_log_normally_and_only_when_asked() -> None:
    mix = {"full_gaussian": 1.0}
    assert breed(mix, PARENTS, seeded()).options == {"eps": 0.15}
    sizes = [breed(mix, PARENTS, seeded(s), adapt=0.3).options["eps"] for s in range(200)]
    logs = torch.tensor(sizes).log()
    assert logs.mean() == pytest.approx(math.log(0.15), abs=0.07)
    assert logs.std() == pytest.approx(0.3, rel=0.15)
    child = breed(mix, PARENTS, seeded(), adapt=1e-9, inherited={"full_gaussian.eps": 0.4})
    assert child.options["eps"] == pytest.approx(0.4)
    assert child.step_sizes == {"full_gaussian.eps": child.options["eps"]}
    other = breed(mix, PARENTS, seeded(), adapt=1e-9, inherited={"svd_structured.eps": 0.4})
    assert other.options["eps"] == pytest.approx(0.15)
    name = "dare+full_gaussian"
    options = breed({name: 1.0}, PARENTS, seeded(), adapt=0.5).options
    assert options["dare.p"] == 0.7 and options["full_gaussian.eps"] != 0.15


def test_adapted_steps_stay_within_their_range_and_never_die_out() -> None:
    mix = {"svd_structured": 1.0}
    child = breed(mix, PARENTS, seeded(), adapt=50.0, inherited={"svd_structured.eps": 1e9})
    assert child.options["eps"] == 1.0
    child = breed(mix, PARENTS, seeded(), adapt=1e-9, inherited={"svd_structured.eps": 1e-9})
    assert child.options["eps"] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("mix", "options", "message"),
    [
        ({"dares": 0.0}, {}, "did you mean dare"),
        ({}, {"dares": {}}, "did you mean dare"),
        ({}, {"dare": {"q": 1.0}}, "its options: p"),
        ({"svd_subspace": 1.0}, {"svd_subspace": {"k": 4.0}}, r"k=4 must be .* 1\.\.3 \(rank 4\)"),
        ({"extrapolative": 1.0}, {"extrapolative": {"eta_min": 2.0}}, "above eta_max"),
    ],
)
def test_a_rehearsal_finds_what_would_stop_a_run(mix: dict, options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        dry_run(mix, options, rank=4)
    dry_run({"svd_subspace": 0.0, "dare+full_gaussian": 1.0}, {"svd_subspace": {"k": 3}}, rank=1)


def test_operators_are_values() -> None:
    assert isinstance(get_operator("dare"), Operator)
    assert get_operator("dare").summary.endswith(".")
