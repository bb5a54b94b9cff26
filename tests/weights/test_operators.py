"""Properties that every operator owes: fit, repeatability, rank, purity, refusals."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_adapters import dense, make, random_adapter, same
from refusals import refuses

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.breeding import all_operators, get_operator

NAMES = [operator.name for operator in all_operators()]


def test_the_papers_eight():
    codes = [operator.code for operator in all_operators()]
    assert codes == ["M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4"]
    assert all(operator.parents == 1 + (operator.code[0] == "X") for operator in all_operators())
    defaults = {operator.name: dict(operator.defaults) for operator in all_operators()}
    assert defaults == {
        "svd_structured": {"eps": 0.1}, "layer_selective_gaussian": {"eps": 0.1, "fraction": 0.33},
        "component_masking": {"rho": 0.3}, "full_gaussian": {"eps": 0.15},
        "dare": {"p": 0.7}, "layer_wise": {},
        "svd_subspace": {"k": None}, "extrapolative": {"eta_min": 1.0, "eta_max": 1.5},
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(
    rank=st.integers(1, 64),
    shapes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=3),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_a_child_fits_repeats_and_leaves_its_parents_alone(name, rank, shapes, dtype, share, seed):
    if name == "svd_subspace" and rank == 1:
        return
    layers = {f"layer_{i}": shape for i, shape in enumerate(shapes)}
    parents = [
        random_adapter(seed + i, rank, dtype=dtype, shapes=layers, true_rank=int(share * rank))
        for i in range(2)
    ]
    before = copy.deepcopy(parents)
    child = make(name, parents, seed)
    assert same(child, make(name, parents, seed))
    assert all(same(parent, old) for parent, old in zip(parents, before, strict=True))
    assert child.spec == parents[0].spec
    assert list(child.factors) == list(parents[0].factors)
    for layer, pair in child.factors.items():
        old = parents[0].factors[layer]
        for new_factor, old_factor in ((pair.A, old.A), (pair.B, old.B)):
            assert new_factor.shape == old_factor.shape
            assert new_factor.dtype == dtype
            assert new_factor.is_contiguous()
            assert torch.isfinite(new_factor).all()
            assert new_factor.data_ptr() != old_factor.data_ptr()


@pytest.mark.parametrize("name", NAMES)
def test_a_member_that_learned_nothing_has_children_that_know_nothing(name):
    fresh = [random_adapter(i, true_rank=0) for i in range(2)]
    fresh = [
        Adapter(a.spec, {n: Factors(torch.randn_like(f.A), f.B) for n, f in a.factors.items()})
        for a in fresh
    ]
    child = make(name, fresh, **({"p": 0.1} if name == "dare" else {}))
    for layer in child.factors:
        assert not dense(child, layer).any()
        # B is zero but A is not: the child can learn.
        assert (child.factors[layer].A.norm(dim=1) > 0.1).all()


@pytest.mark.parametrize("name", ["svd_structured", "svd_subspace", "extrapolative", "dare"])
def test_new_factors_are_scaled_like_a_fresh_lora(name):
    """Rows of A as long as PEFT's start (3^-1/2), whatever the parents' gauge was."""
    parents = [random_adapter(i, 4, gauge_condition=100.0) for i in range(2)]
    child = make(name, parents, **({"eps": 0.0} if name == "svd_structured" else {}))
    for pair in child.factors.values():
        torch.testing.assert_close(pair.A.norm(dim=1), torch.full((4,), 3**-0.5), rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("factor", "value"), [("A", float("nan")), ("B", float("inf"))])
def test_parents_with_values_that_are_not_finite_are_refused(name, factor, value):
    parents = [random_adapter(0), random_adapter(1)]
    for parent in parents:
        getattr(parent.factors["k_proj"], factor)[1, 2] = value
    with pytest.raises(UserError):
        make(name, parents)


def test_unknown_operators_and_options_name_the_valid_ones():
    with refuses("operator=svd_structred"):
        get_operator("svd_structred")
    with refuses("svd_structured"):
        make("svd_structured", [random_adapter(0)], rho=0.1)
    with refuses("none"):
        make("layer_wise", [random_adapter(0), random_adapter(1)], k=1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("svd_structured", {"eps": -0.1}),
        ("svd_structured", {"eps": float("nan")}),
        ("svd_structured", {"eps": None}),
        ("component_masking", {"rho": 1.5}),
        ("dare", {"p": 1.0}),
        ("dare", {"p": "much"}),
        ("svd_subspace", {"k": 4}),
        ("svd_subspace", {"k": 0}),
        ("svd_subspace", {"k": 1.5}),
        ("svd_subspace", {"k": float("inf")}),
        ("extrapolative", {"eta_min": 2.0}),
        ("layer_selective_gaussian", {"fraction": True}),
    ],
)
def test_impossible_options_are_refused(name, options):
    with refuses(next(iter(options))):
        make(name, [random_adapter(0), random_adapter(1)], **options)
