"""What `gpu.py` measures of a base with members on it: sampling, learning, memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from drawn import sample, seeds, words

from azr_population.config.schema import LearnerConfig
from azr_population.engines.architecture import Architecture
from azr_population.engines.base_model import use_fused_kernels
from azr_population.engines.canary import random_adapter
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample
from azr_population.engines.memory import GIB, GpuLayout, kept_tokens, phases
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.versions import installed
from azr_population.weights.adapter import Adapter, Factors, LoraSpec

MEMBERS = 8
PIECE = 8192
"""Tokens that go through the learner at once."""
ATTEMPTS = 3
"""Times that a step is measured until the longer of its two calls takes longer."""
COPIES = 8
"""Completions of a prompt: they stand in a batch as rows do, and cost one reading."""


def equal_share(one: list[Any], other: list[Any]) -> float:
    """The share of completions that have the same tokens."""
    pairs = [(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)]
    return sum(a.token_ids == b.token_ids for a, b in pairs) / len(pairs)


class Base:
    """The measurements; `take` gives them their base."""

    def __init__(self, asked: Any, note: Any, config: Any) -> None:
        self.device, self.note, self.config = asked.device, note, config
        self.on_gpu = self.device == "cuda"
        architecture = Architecture.of(config)
        assert architecture is not None
        self.architecture = architecture
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32
        self.rates = dict.fromkeys(range(MEMBERS), Hyperparameters(1e-5))

    def take(self, model: Any) -> None:
        """Makes members that change something on the base, a sampler and a learner."""
        self.note("base, GB", self.held())
        self.model = model
        self.bank = make_bank(model, LoraSpec(32, 64.0), seeds(MEMBERS))
        loud = random_adapter(self.bank.read(0), 0)
        for slot in range(MEMBERS):
            # One draw, turned for the others: eight of them take half a minute.
            turned = {
                n: Factors(f.A.roll(slot, 1), f.B.roll(slot, 0)) for n, f in loud.factors.items()
            }
            self.bank.write(slot, Adapter(loud.spec, turned))
        settings = LearnerConfig(
            gradient_checkpointing=True, micro_batch_tokens=PIECE, importance_sampling_cap=2.0
        )
        self.learner = TorchLearner(model, self.bank, settings)
        self.rollout = TorchRollout(model, self.bank, frozenset(), share_prefix=False)
        self.note("and eight members, GB", self.held())

    def parts(self) -> list[Callable[[], None]]:
        return [
            self.graphs, self.decoding, self.update_kept, self.generate, self.update,
            self.memory, self.update_fused,
        ]  # fmt: skip

    def held(self) -> float:
        """Gigabytes in tensors on the GPU."""
        if not self.on_gpu:
            return 0.0
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated() / 1e9

    def seconds(self, run: Callable[[], object], times: int = 1) -> float:
        """Of one call, the least of `times`."""
        found = []
        for _ in range(times):
            self.wait()
            start = time.perf_counter()
            run()
            self.wait()
            found.append(time.perf_counter() - start)
        return min(found)

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def ceilings(self) -> None:
        """What the card does at best: a copy, a product of matrices."""
        if not self.on_gpu:
            self.copied, self.computed = 1e11, 1e11
            return
        print(torch.cuda.get_device_name(), torch.__version__, flush=True)
        self.note("card", torch.cuda.get_device_name())
        long = torch.empty(1 << 30, dtype=torch.bfloat16, device=self.device)
        other = torch.empty_like(long)
        self.copied = 2 * 2 * long.numel() / self.seconds(lambda: other.copy_(long), 4)
        square = torch.randn(8192, 8192, dtype=torch.bfloat16, device=self.device)
        self.computed = 2 * 8192**3 / self.seconds(lambda: square @ square, 8)
        self.note("ceilings", {"TB/s": self.copied / 1e12, "TFLOP/s": self.computed / 1e12})

    def rows(self) -> tuple[int, int, int, int]:
        """Rows, tokens of a prompt, and new tokens of a short and of a long call."""
        return (256, 512, 9, 41) if self.on_gpu else (64, 24, 2, 6)

    def prompts(self, several: bool) -> list[list[int]]:
        rows, width, _, _ = self.rows()
        shorter = (9 if self.on_gpu else 1) * several
        written = words(self.config, rows // COPIES, width)
        return [ids[: width - row % 7 * shorter] for row, ids in enumerate(written)]

    def write(self, prompts: list[list[int]], members: int, tokens: int) -> list[Any]:
        """`COPIES` completions of each prompt, dealt to the members; 0 are the bare base."""
        count = len(prompts)
        slots = [row * members // count for row in range(count)] if members else [-1] * count
        return self.rollout.generate(prompts, slots, Sampling(tokens, n=COPIES), 1)

    def step(self, prompts: Any, members: int) -> dict[str, float]:
        """Of a decoding step by `write`."""
        first, brief, full, step = self.step_seconds(partial(self.write, prompts, members))
        rows, _, short, _ = self.rows()
        return {
            "ms a step": 1e3 * step, "tokens/s": rows / step, "reading s": brief - short * step,
            "first s": first, "then s": full,
        }  # fmt: skip

    def step_seconds(self, call: Callable[[int], object]) -> tuple[float, float, float, float]:
        """Seconds of a first long call (the warm-up), a short call, a long call, and one decoding
        step: the difference of the two by their new tokens. Raises RuntimeError: in each of
        `ATTEMPTS` the longer call took no longer, so that a step cannot be told from noise."""
        _, _, short, long = self.rows()
        first = self.seconds(partial(call, long))
        for _ in range(ATTEMPTS):
            brief, full = (self.seconds(partial(call, tokens)) for tokens in (short, long))
            if full > brief:
                return first, brief, full, (full - brief) / (long - short)
        raise RuntimeError(f"{long} new tokens took {full:.4g} s, and {short} took {brief:.4g} s")

    def step_of_eight(self) -> None:
        self.note("decoding, 8 members", self.step(self.prompts(True), MEMBERS))

    def decoding(self, name: str = "decoding") -> None:
        """Steps by members, with prompts of several lengths and of one."""
        speeds = {}
        for several, counts in ((True, (8, 1, 0, 2, 4)), (False, (8, 1))):
            for members in counts:
                figure = self.step(self.prompts(several), members)
                speeds[several, members] = figure["tokens/s"]
                lengths = "several lengths" if several else "one length"
                self.note(f"{name}, {members} members, {lengths}", figure)
        for several in (True, False):
            ratio = speeds[several, 8] / speeds[several, 1]
            self.note(f"{name}, 8 members to 1", {"several": several, "x": ratio})

    def graphs(self) -> None:
        """The same where a step is one launch; both ways write the same."""
        prompts, tokens = self.prompts(True), self.rows()[2]
        plain = self.write(prompts, MEMBERS, tokens)
        eager = self.rollout
        self.rollout = TorchRollout(
            self.model, self.bank, frozenset(), share_prefix=False, step_graphs=True
        )
        try:
            self.note(
                "graphs, tokens equal", equal_share(plain, self.write(prompts, MEMBERS, tokens))
            )
            self.decoding("decoding by graphs")
        finally:
            self.rollout = eager
            # Without `held`, which collects what a run would leave to Python.
            left = torch.cuda.memory_allocated() / 1e9 if self.on_gpu else 0.0
            self.note("after graphs, GB", left)

    def generate(self) -> None:
        """The peer: transformers' own, of the bare base, all prompts of one length."""
        rows, width, _, _ = self.rows()
        ids = torch.tensor(words(self.config, rows, width), device=self.device)

        def call(tokens: int) -> None:
            self.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                min_new_tokens=tokens, do_sample=True, top_k=0, pad_token_id=0,
            )  # fmt: skip

        ours, self.model.config._attn_implementation = (
            self.model.config._attn_implementation, "sdpa",
        )  # fmt: skip
        try:
            *_, step = self.step_seconds(call)
        finally:
            self.model.config._attn_implementation = ours
        self.note("generate, bare base", {"ms a step": 1e3 * step, "tokens/s": rows / step})

    def samples(self, rows: int) -> dict[int, list[TrainingSample]]:
        """So many of each member, really sampled, so that the sampler's and the learner's scores
        can be compared."""
        prompt, tokens = (448, 64) if self.on_gpu else (16, 8)
        written = words(self.config, MEMBERS * rows // COPIES, prompt)
        groups = self.write(
            [ids[: prompt - row % 5] for row, ids in enumerate(written)], MEMBERS, tokens
        )
        done = [each for group in groups for each in group]
        turns = [TrainingSample(each, 1.0 - 2 * (row % 2)) for row, each in enumerate(done)]
        return {slot: turns[slot * rows : (slot + 1) * rows] for slot in range(MEMBERS)}

    def update(self, name: str = "update") -> None:
        """Of eight members; and how far sampler and learner are apart in the base's dtype."""
        samples = self.samples(32 if self.on_gpu else COPIES)
        one = samples[0]
        tokens = sum(len(s.completion.prompt_ids) + len(s.completion.token_ids) for s in one)
        self.seconds(lambda: self.learner.update({0: one}, self.rates))
        found: dict[int, Any] = {}
        seconds = self.seconds(lambda: found.update(self.learner.update(samples, self.rates)))
        # The base is frozen: forward and the gradient by its inputs, and forward again.
        weights = self.architecture.linear_weights
        useful = 2 * 2.0 * weights * tokens * MEMBERS / seconds
        again = 1.0 if self.learner.config.recompute_above_tokens else 1.5
        self.note(name, {
            "s of eight": seconds, "tokens a member": tokens, "useful TFLOP/s": useful / 1e12,
            "hardware TFLOP/s": again * useful / 1e12,
            "useful MFU of 989 TFLOP/s": useful / 989e12,
            "of this card's product": useful / getattr(self, "computed", 1e15),
            "mismatch_kl": {slot: figures["mismatch_kl"] for slot, figures in found.items()},
            "ess": min(figures["ess"] for figures in found.values()),
        })  # fmt: skip
        self.note(f"{name}, GB held", self.held())

    def layout(self) -> GpuLayout:
        size, (prompt, answer) = self.dtype.itemsize, (6144, 8096) if self.on_gpu else (32, 24)
        return GpuLayout(
            self.architecture, MEMBERS, 32, prompt, answer, size=size, lora_bytes=size, vllm=False,
            micro_batch_tokens=PIECE, generate_tokens=self.rows()[0] * sum(self.rows()[1::2]),
            on_gpu=self.on_gpu,
        )  # fmt: skip

    def update_fused(self) -> None:
        """`update_kept` with Liger's kernels, which the model keeps: so this comes last."""
        if self.on_gpu and installed("liger-kernel"):
            use_fused_kernels(self.model)
            self.update_kept("fused kernels, ")
        else:
            self.note("update, fused kernels", "left out: no GPU, or no liger-kernel")

    def update_kept(self, kernels: str = "") -> None:
        """`update` where pieces that fit keep their products."""
        keep = kept_tokens(self.layout(), 80 * GIB) or 64
        settings = self.learner.config
        self.learner.config = settings.model_copy(update={"recompute_above_tokens": keep})
        try:
            self.update(f"update, {kernels}pieces of {keep} tokens kept")
        finally:
            self.learner.config = settings
            self.wait()

    def memory(self) -> None:
        """The most that is held at a time in each phase, beside the dry run's."""
        layout = self.layout()
        table, made = phases(layout, 80 * GIB), dict[str, Any]()
        row = sample(0, words(self.config, 1, layout.row)[0], layout.prompt, 1.0)
        done = row.completion
        runs = {
            "generate": lambda: self.write(self.prompts(False), MEMBERS, self.rows()[3]),
            "score": lambda: self.learner.log_probs([done.prompt_ids], [done.token_ids], [0]),
            "update": lambda: self.learner.update({0: [row] * 2}, self.rates),
        }
        # As on several GPUs, which is what the dry run is about; `update_fused` comes later.
        parallel, self.learner.parallel = self.learner.parallel, True
        try:
            for name, run in runs.items():
                if self.on_gpu:
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
                seconds = self.seconds(run)
                expected = sum(table[name].values()) - table[name]["CUDA, NCCL, graphs"]
                made = {"dry run GB": expected / 1e9, "s": seconds, "parts": table[name]}
                if self.on_gpu:
                    made["measured GB"] = torch.cuda.max_memory_allocated() / 1e9
                    made["reserved GB"] = torch.cuda.max_memory_reserved() / 1e9
                self.note(f"memory, {name}", made)
        finally:
            self.learner.parallel = parallel
        if self.on_gpu:
            free, total = torch.cuda.mem_get_info()
            own = (total - free - torch.cuda.memory_reserved()) / 1e9
            self.note("memory, CUDA's own GB", own)
