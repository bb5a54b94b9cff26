import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from random_adapters import dense, random_adapter, relative_error, same
from refusals import refuses

from azr_population.errors import UserError
from azr_population.weights import breeding as breedings
from azr_population.weights.adapter import Adapter, Factors, refuse_not_finite
from azr_population.weights.breeding import all_operators, breed, dry_run, get_operator
from azr_population.weights.operator import OPERATORS

PARENTS = [random_adapter(0), random_adapter(1)]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_operators_are_drawn_by_weight_and_only_those_with_enough_parents():
    mix = {"full_gaussian": 3.0, "layer_wise": 1.0, "dare": 0.0}
    generator = seeded()
    names = Counter(breed(mix, PARENTS, generator)[1].operator for _ in range(400))
    assert names.keys() == {"full_gaussian", "layer_wise"}
    assert 260 < names["full_gaussian"] < 340
    mix = {"dare": 100.0, "full_gaussian": 1.0}
    assert {breed(mix, PARENTS[:1], seeded(s))[1].operator for s in range(9)} == {"full_gaussian"}
    with refuses("1 parents"):
        breed({"dare": 1.0}, PARENTS[:1], seeded())


def test_the_same_seed_breeds_the_same_child():
    mix = {"full_gaussian": 1.0, "dare": 1.0, "component_masking": 1.0}
    (child, breeding), (again, repeated) = (breed(mix, PARENTS, seeded(3)) for _ in range(2))
    assert breeding == repeated and same(child, again)


def test_options_used_are_reported_and_hold_in_sequences_too():
    _, breeding = breed({"dare": 1.0}, PARENTS, seeded(), {"dare": {"p": 0.5}})
    assert breeding == ("dare", {"p": 0.5})
    _, breeding = breed({"full_gaussian": 1.0}, PARENTS, seeded())
    assert breeding == ("full_gaussian", {"eps": 0.15})
    name = "dare+full_gaussian"
    options = {"dare": {"p": 0.5}, "full_gaussian": {"eps": 0.3}, name: {"full_gaussian.eps": 0.2}}
    _, breeding = breed({name: 1.0}, PARENTS, seeded(), options)
    assert breeding.options == {"dare.p": 0.5, "full_gaussian.eps": 0.2}


@pytest.mark.parametrize("weights", [{}, {"dare": 0.0}, {"dare": -1.0}, {"dare": float("nan")}])
def test_weights_that_leave_nothing(weights):
    with pytest.raises(UserError):
        breed(weights, PARENTS, seeded())


def test_a_mutation_takes_the_crossovers_child():
    name = "svd_subspace+full_gaussian"
    child, breeding = breed({name: 1.0}, PARENTS, seeded(), {name: {"full_gaussian.eps": 0.0}})
    assert breeding == (name, {"full_gaussian.eps": 0.0})
    generator = seeded()
    torch.multinomial(torch.ones(1, dtype=torch.float64), 1, generator=generator)
    crossed = get_operator("svd_subspace")(PARENTS, generator)
    for layer in crossed.factors:
        assert relative_error(dense(child, layer), dense(crossed, layer)) <= 1e-6
    assert not same(breed({name: 1.0}, PARENTS, seeded())[0], child)


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("full_gaussian+dare", "dare"),
        ("full_gaussian+full_gaussian", "full_gaussian"),
        ("dare+full_gaussian+svd_structured", "svd_structured"),
        ("dare+nonsense", "nonsense"),
    ],
)
def test_only_a_mutation_follows_a_crossover(name, culprit):
    with refuses(culprit):
        get_operator(name)


def test_breeding_gives_up_on_parents_that_cannot_have_finite_children():
    parent = PARENTS[0].map(lambda factor: torch.full_like(factor, 65504.0).half())
    name = "svd_structured"
    with refuses("8 children"):
        breed({name: 1.0}, [parent], seeded(), {name: {"eps": 1.0}})


def test_a_child_that_cannot_be_trained_is_drawn_again(monkeypatch):
    children = []

    def refuse_the_first(child, where):
        children.append(child)
        if len(children) == 1:
            raise UserError("too large")

    monkeypatch.setattr(breedings, "refuse_unsound", refuse_the_first)
    child, _ = breed({"full_gaussian": 1.0}, PARENTS, seeded())
    assert child is children[1] and not same(*children)


@pytest.mark.parametrize(
    ("mix", "options", "culprit"),
    [
        ({"dares": 0.0}, {}, "dares"),
        ({}, {"dares": {}}, "dares"),
        ({}, {"dare": {"q": 1.0}}, "q"),
        ({"svd_subspace": 1.0}, {"svd_subspace": {"k": 4.0}}, "k=4"),
        ({"extrapolative": 1.0}, {"extrapolative": {"eta_min": 2.0}}, "eta_min"),
    ],
)
def test_a_rehearsal_finds_what_would_stop_a_run(mix, options, culprit):
    with refuses(culprit):
        dry_run(mix, options, rank=4)
    dry_run({"svd_subspace": 0.0, "dare+full_gaussian": 1.0}, {"svd_subspace": {"k": 3}}, rank=1)


@pytest.mark.parametrize(
    ("value", "fault"), [(math.inf, "a value that is not finite"), (1e30, "1e+30")]
)
def test_a_child_that_no_training_leaves_is_drawn_again_and_its_operator_is_named(
    monkeypatch, value, fault
):
    def unsound(parents, generator):
        child = random_adapter(0)
        child.factors["q_proj"].B[0, 0] = value
        return child

    real = OPERATORS.find("layer_wise")
    monkeypatch.setitem(OPERATORS, "layer_wise", replace(real, function=unsound))
    with refuses(f"layer_wise: its child holds {fault}"):
        breed({"layer_wise": 1.0}, PARENTS, seeded())
    _, breeding = breed({"layer_wise": 1.0, "full_gaussian": 1.0}, PARENTS, seeded())
    assert breeding.operator == "full_gaussian"


def test_values_whose_sum_overflows_are_finite():
    huge = Factors(torch.full((2, 4), 3e38), torch.full((4, 2), 3e38))
    adapter = Adapter(PARENTS[0].spec, {"layer": huge})
    refuse_not_finite(adapter, "it")
    huge.A[0, 0] = math.nan
    with refuses("in layer"):
        refuse_not_finite(adapter, "it")


@pytest.mark.parametrize("operator", all_operators(), ids=lambda operator: operator.name)
def test_parents_without_layers_are_refused(operator):
    with refuses("no layers"):
        operator([Adapter(PARENTS[0].spec, {})] * 2, seeded())
