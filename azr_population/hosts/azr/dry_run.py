"""The dry run inside AZR: members, memory, counts of a step, and what would be refused.

`population.dry_run=true` prints it and ends. It needs the base's config.json and no GPU: told of
another machine (`population.gpu_memory`, `population.gpu`), it only notes what this one lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

from azr_population.engines import memory
from azr_population.engines.memory import GpuLayout
from azr_population.engines.step_counts import MEASURED_SHARES, StepCounts
from azr_population.errors import UserError
from azr_population.hosts.azr.azr_plan import AzrPlan
from azr_population.hosts.azr.fitting import Machine, Start
from azr_population.hosts.azr.settings import as_typed
from azr_population.method.config_check import plan_page, population_lines

PROMPT, RESPONSE, VALID = 1500, 1000, 2 / 3
"""Tokens that a prompt and a response have on average, and the share of proposals that are valid:
assumed, for counts only."""
SMALL = "bash examples/azr.sh coder7b_24gb, coder3b_24gb"


def page(config: Any, start: Start) -> tuple[list[str], bool]:
    """The page as lines, and whether the run could start."""
    settings, machine = start.plan.settings, start.machine
    elsewhere = settings.gpu is not None or settings.gpu_memory is not None
    faults = start.faults + ([] if elsewhere else start.lacking_here)
    lines: list[str] = []
    # What cannot be described is among the faults, which are all shown.
    with suppress(UserError) if faults else nullcontext():
        lines += _who(config, start.plan)
    if start.layout is None:
        lines.append(f"memory and counts: not worked out {start.why_no_layout}")
    else:
        lines += _memory(start.layout, machine)
        lines += _counts(config, start.plan, start.layout, machine)
        if machine.bytes_each < 30e9 and memory.check_memory(start.layout, machine.bytes_each):
            lines.append(f"for one GPU of 24 GB: {SMALL}")
    lines += [f"note: {line}" for line in start.notes]
    lines += [f"not on this machine: {line}" for line in start.lacking_here if elsewhere]
    printed = plan_page(lines, faults, "population.dry_run")
    return [as_typed(line) for line in printed], not faults


def _who(config: Any, plan: AzrPlan) -> Iterator[str]:
    roster, kinds = plan.roster, config.azr.problem_types
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    a_member, (_, attempts, _) = plan.config.population.batch_size, _rows(config, plan)
    yield from population_lines(plan, plan.engine.base)
    longest = config.data.max_prompt_length + config.data.max_response_length
    yield (
        f"a step: {a_member} rows a member, {a_member * len(roster):,} in all, "
        f"{a_member * len(roster) / gpus:,.0f} on each of {gpus} GPUs, of up to {longest:,} tokens "
        f"({', '.join(kinds)}); up to {attempts * len(kinds):,} attempts that estimate solve rates"
    )


def _rows(config: Any, plan: AzrPlan) -> tuple[int, int, int]:
    """Rows of each problem type in a step: proposals, attempts at all of them, answers to train."""
    roster, rows = plan.roster, plan.member_rows
    proposals = rows * len(roster.teachers)
    attempts = proposals * config.azr.reward.n_samples
    return proposals, attempts, rows * len(roster.students)


def _memory(layout: GpuLayout, machine: Machine) -> Iterator[str]:
    """The table by phase, in GB."""
    total, phases = machine.bytes_each, memory.phases(layout, machine.bytes_each)
    assumed = "" if machine.known else ", assumed: population.gpu_memory says what there will be"
    cut = f", vLLM's base cut over {layout.parallel}" if layout.parallel > 1 else ""
    cut += ", population.offload: the learner leaves them to vLLM" if layout.offload else ""
    yield (
        f"memory of each of {machine.gpus} GPUs, {total / 1e9:.1f} GB usable{assumed}{cut}; "
        f"rows of up to {layout.row:,} tokens:"
    )
    names = list(dict.fromkeys(name for parts in phases.values() for name in parts))
    yield _cells("GB", phases)
    for name in names:
        # A share of vLLM's that does not hold its base leaves no cache.
        amounts = (parts.get(name) for parts in phases.values())
        yield _cells(name, [_gigabytes(None if x is None else max(0.0, x)) for x in amounts])
    sums = [sum(max(0.0, x) for x in parts.values()) for parts in phases.values()]
    yield _cells("in all", map(_gigabytes, sums))
    yield _cells("left", [_gigabytes(total - used) for used in sums])
    tokens = memory.cache_tokens(layout, total)
    if tokens > 0:
        yield (
            f"KV cache: {tokens:,} tokens of "
            f"{layout.architecture.cache * layout.size / 1e3:.0f} kB, "
            f"{tokens / layout.row:.1f} rows of full length or "
            f"{tokens // (PROMPT + RESPONSE):,} of {PROMPT + RESPONSE:,}"
        )
    if layout.architecture.windowed:
        yield (
            f"{layout.architecture.windowed} of {layout.architecture.layers} layers look back "
            f"{layout.architecture.window:,} tokens; their keys and values are counted whole, and "
            "vLLM may need less"
        )
    if layout.no_recompute_tokens:
        yield (
            "an update keeps the products of micro-batches of up to "
            f"{layout.no_recompute_tokens:,} tokens (population.recompute_above_tokens), and runs "
            "the layers of a longer row again"
        )
    if layout.vllm:
        share = memory.vllm_utilisation(layout, total)
        yield (
            f"gpu_memory_utilization={layout.vllm_fraction:g} is vLLM's own share; vLLM 0.8.5 "
            f"is told {share:.2f}, as it counts the learner too; of each GPU up to "
            f"{memory.host_bytes(layout, total) / 1e9:.1f} GB are in the host's memory"
        )
        key = f"actor_rollout_ref.rollout.engine_kwargs.vllm.{memory.SLEEPS}"
        if layout.sleeps:
            yield "vLLM sleeps while members learn"
        else:
            yield f"vLLM stays awake while members learn; +{key}=True lets it sleep"


def _counts(config: Any, plan: AzrPlan, layout: GpuLayout, machine: Machine) -> Iterator[str]:
    """Lines on a step's work and the least time that it can take."""
    settings = plan.settings
    kinds, samples = len(config.azr.problem_types), config.azr.reward.n_samples
    proposals, attempts, solved = (kinds * rows for rows in _rows(config, plan))
    response = min(RESPONSE, int(config.data.max_response_length))
    calls, valid = 2 if settings.merge_calls else 3 * kinds, round(attempts * VALID)
    step = StepCounts(calls, proposals, valid, solved, samples, PROMPT, response)
    costs = {
        "sampling": step.sampling(layout),
        "updates": step.update(layout, settings.kl_loss_coef > 0),
    }
    work = "; ".join(
        f"{name} {cost.flops / 1e15:,.1f} PFLOP and {cost.bytes / 1e12:,.1f} TB"
        for name, cost in costs.items()
    )
    yield (
        f"counted for prompts of {PROMPT:,} tokens, answers of {response:,}, {VALID:.0%} valid "
        f"proposals: {calls} calls of the sampler a step, {step.generated / 1e6:,.1f} million "
        f"tokens generated, {step.trained / 1e6:,.1f} million trained on; {work}"
    )
    device = machine.device
    speeds = {name: cost.seconds(device, machine.gpus) for name, cost in costs.items()}
    parts = ", ".join(f"{name} {seconds:,.0f}" for name, seconds in speeds.items())
    yield (
        f"roofline: at least {sum(speeds.values()):,.0f} s a step ({parts}) on {machine.gpus} "
        f"{device.name} at its data sheet's {device.flops / 1e12:.0f} TFLOPS and "
        f"{device.bandwidth / 1e12:.2f} TB/s, which no run reaches; executions of programs and "
        "moves between GPU and host come on top"
    )
    scaled = {name: seconds / MEASURED_SHARES[name] for name, seconds in speeds.items()}
    parts = ", ".join(f"{name} {seconds:,.0f}" for name, seconds in scaled.items())
    shares = ", ".join(f"{share} of the bound in {name}" for name, share in MEASURED_SHARES.items())
    yield (
        f"extrapolated: about {sum(scaled.values()):,.0f} s a step ({parts}) at the rates of our "
        f"torch engine on one H100 at a 7B base's shapes, sampling by CUDA graphs ({shares}); vLLM "
        "has not been timed"
    )


def _cells(name: str, values: Any) -> str:
    return f"  {name:<20}" + "".join(f"{value:>10}" for value in values)


def _gigabytes(amount: float | None) -> str:
    return "-" if amount is None else f"{amount / 1e9:.1f}"
