"""Do children of every operator recover? (PopuLoRA Fig 6, Appendix J, at nano scale)

    python recipes/fig6_operator_retention/retention.py --out FOLDER

1. Trains `seeds + 1` parents from the base, each on its own stream of code_o tasks.
2. For every seed: two parents, the better one first; a child by each of the eight operators; and an
   untouched copy of the better parent. All of them start with a fresh optimizer, as in a run.
3. Trains all of them for `--steps` steps on the same stream of tasks per seed, in one bank.
4. Measures, at steps 0, 1, 2, ..., the chance to solve a held-out exam task.

Training is a student's in a run: `attempts` samples a task, AZR's rewards (1, -0.5, -1), TRR++
advantages, AdamW. What differs: the tasks come from the nano grammar instead of teachers, so that
all arms meet the same ones. The measure is the mean, over the exam's code_o tasks, of the
probability of the right answer (end of sequence included) at temperature 1: the expected solve
rate, without sampling noise. Another base (`--base FOLDER`) reasons before it answers, so its exam
is sampled; its tasks come from an AZR seed file (`--seed-file`), a quarter of them held out. Writes
curves.jsonl (a line per member and measurement) as it goes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from azr_population.adapters.adapter import LoraSpec
from azr_population.conf.schema import TaskConfig
from azr_population.engines.engine import Completion, Sample, Sampling
from azr_population.engines.torch_engine import TorchEngine
from azr_population.evolution.registry import PAPER_CODES, breed, operators
from azr_population.nano import nano_base_path
from azr_population.nano.corpus import draw_example
from azr_population.nano.exam import exam
from azr_population.nano.grammar import Grammar
from azr_population.referee import Referee
from azr_population.selfplay.advantages import task_relative
from azr_population.selfplay.phases import seed_tasks
from azr_population.selfplay.questions import question
from azr_population.selfplay.rewards import student_reward
from azr_population.selfplay.streams import Streams
from azr_population.tasks.chat_format import ChatFormat
from azr_population.tasks.formats import Format
from azr_population.tasks.nano_format import NanoFormat
from azr_population.tasks.seed_file import read_seed_file
from azr_population.tasks.task import Task, TaskType

O = TaskType.CODE_O  # noqa: E741
EVALUATE = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)


def training_tasks(count: int, seed: int) -> list[Task]:
    """code_o tasks of the grammar, programs outside the exam's bucket."""
    rng = Random(f"retention {seed}")
    grammar = Grammar(rng)
    tasks: list[Task] = []
    while len(tasks) < count:
        example = draw_example(grammar, rng.choice((0, 1, 1, 2, 2, 3)), simple=False)
        if example is not None:
            arguments, value = example.pairs[0]
            tasks.append(Task(O, example.program, (arguments,), (value,)))
    return tasks


def answer(
    engine: TorchEngine,
    format: Format,
    referee: Referee,
    tasks: dict[int, Sequence[Task]],
    attempts: int,
    generator: torch.Generator,
) -> dict[int, list[tuple[Completion, bool, bool]]]:
    """By slot: its completions for its tasks, whether each parsed and whether it solved."""
    rows = [(slot, task) for slot, own in tasks.items() for task in own]
    completions = engine.generate(
        [format.solve_prompt(task) for _, task in rows],
        [slot for slot, _ in rows],
        Sampling(format.max_new_tokens(O, "solve"), n=attempts),
        generator,
    )
    answers = [[format.parse_answer(O, one.text) for one in group] for group in completions]
    grades = referee.grade(
        [
            question(task, [text for text in texts if text is not None])
            for (_, task), texts in zip(rows, answers, strict=True)
        ]
    )
    results: dict[int, list[tuple[Completion, bool, bool]]] = {slot: [] for slot in tasks}
    for (slot, _), group, texts, marks in zip(rows, completions, answers, grades, strict=True):
        given = iter(marks)
        for one, text in zip(group, texts, strict=True):
            solved = text is not None and next(given).solved
            results[slot].append((one, text is not None, solved))
    return results


def train(
    engine: TorchEngine,
    results: dict[int, list[tuple[Completion, bool, bool]]],
    learning_rate: float,
) -> None:
    """One policy-gradient step of every slot on its own answers."""
    updates = {}
    for slot, answers in results.items():
        rewards = [student_reward(parsed, solved) for _, parsed, solved in answers]
        updates[slot] = [
            Sample(completion, advantage)
            for (completion, _, _), advantage in zip(
                answers, task_relative(rewards, [slot] * len(rewards)), strict=True
            )
            if advantage is not None
        ]
    engine.update(updates, dict.fromkeys(results, learning_rate))


def expected_solve_rate(
    engine: TorchEngine, format: Format, tasks: Sequence[Task], slot: int
) -> float:
    """The mean probability of the right answer, right after the prompt, at temperature 1."""
    prompts = [format.solve_prompt(task) for task in tasks]
    texts = [p + task.outputs[0] for p, task in zip(prompts, tasks, strict=True)]
    tokenizer = engine.tokenizer
    starts = [len(ids) for ids in tokenizer(prompts, add_special_tokens=False)["input_ids"]]
    full = tokenizer(texts, add_special_tokens=False)["input_ids"]
    full = [[*ids, tokenizer.eos_token_id] for ids in full]
    order = sorted(range(len(tasks)), key=lambda index: len(full[index]))
    total = 0.0
    for begin in range(0, len(order), 64):
        chunk = order[begin : begin + 64]
        width = max(len(full[index]) for index in chunk)
        ids = torch.tensor([full[i] + [0] * (width - len(full[i])) for i in chunk])
        mask = torch.tensor([[1] * len(full[i]) + [0] * (width - len(full[i])) for i in chunk])
        with torch.inference_mode(), engine.bank.routed(torch.full((len(chunk),), slot)):
            logits = engine.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        logprobs = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        for row, index in enumerate(chunk):
            total += float(logprobs[row, starts[index] - 1 : len(full[index]) - 1].sum().exp())
    return total / len(tasks)


class Retention:
    """What stays the same through a run: tasks, exam, referee, streams."""

    def __init__(self, arguments: argparse.Namespace, referee: Referee) -> None:
        self.arguments = arguments
        self.referee = referee
        self.streams = Streams(arguments.seed)
        self.started = time.monotonic()
        self.base = Path(arguments.base or nano_base_path())
        self.base_sha256 = None
        if not arguments.base:
            weights = (self.base / "model.safetensors").read_bytes()
            self.base_sha256 = hashlib.sha256(weights).hexdigest()[:16]
        self.format: Format = ChatFormat() if arguments.base else NanoFormat()
        if arguments.base:
            proposals = [p for p in read_seed_file(arguments.seed_file) if p.type is O]
            tasks = seed_tasks(proposals, referee, TaskConfig())
            self.exam, self.pool = tasks[::4], [task for i, task in enumerate(tasks) if i % 4]
        else:
            self.exam = [task for task in exam(arguments.exam, seed=7) if task.type is O]
            self.pool = training_tasks(1500, arguments.seed)

    def bank(self, purpose: str, slots: int) -> TorchEngine:
        """An engine with fresh members."""
        rank = self.arguments.rank
        return TorchEngine.from_folder(
            self.base,
            LoraSpec(rank=rank, alpha=2.0 * rank),
            slots,
            self.streams.torch(purpose),
            dtype=self.arguments.dtype,
            device=self.arguments.device,
        )

    def step(self, engine: TorchEngine, purposes: Sequence[str], step: int) -> float:
        """Trains every slot once on tasks drawn by its purpose; the mean solve rate."""
        tasks = {}
        for slot, purpose in enumerate(purposes):
            generator = self.streams.numpy(purpose, step)
            chosen = generator.choice(len(self.pool), self.arguments.tasks, replace=False)
            tasks[slot] = [self.pool[index] for index in chosen]
        generator = self.streams.torch(f"sample {len(purposes)}", step, self.arguments.device)
        results = answer(
            engine, self.format, self.referee, tasks, self.arguments.attempts, generator
        )
        train(engine, results, self.arguments.learning_rate)
        marks = [solved for answers in results.values() for _, _, solved in answers]
        return sum(marks) / len(marks)

    def scores(self, engine: TorchEngine, slots: int) -> list[float]:
        """Every slot's score in the exam, in [0, 1]."""
        if isinstance(self.format, NanoFormat):
            return [
                expected_solve_rate(engine, self.format, self.exam, slot) for slot in range(slots)
            ]
        generator = self.streams.torch("exam", 0, self.arguments.device)
        sheets = dict.fromkeys(range(slots), self.exam)
        results = answer(engine, self.format, self.referee, sheets, 4, generator)
        return [sum(s for _, _, s in answers) / len(answers) for answers in results.values()]

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:6.0f} s  {text}", flush=True)


def run(retention: Retention) -> None:
    arguments, say = retention.arguments, retention.say
    arms = ["untouched", *(op.name for op in operators() if op.code in PAPER_CODES)]
    count = arguments.seeds + 1
    bank = retention.bank("parents", max(count, arguments.seeds * len(arms)))
    say(f"base: {retention.scores(bank, 1)[0]:.3f}")
    for step in range(1, arguments.parent_steps + 1):
        rate = retention.step(bank, [f"parent {parent}" for parent in range(count)], step)
        if step % 10 == 0:
            say(f"parents, step {step}: solve rate in training {rate:.2f}")
    level = retention.scores(bank, count)
    say("parents: " + ", ".join(f"{value:.3f}" for value in level))
    adapters = [bank.read_member(parent) for parent in range(count)]
    members: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        better, weaker = sorted((seed, seed + 1), key=lambda parent: -level[parent])
        parents = [adapters[better], adapters[weaker]]
        for arm in arms:
            child = parents[0]
            if arm != "untouched":
                generator = retention.streams.torch(f"breed {arm}", seed)
                child = breed({arm: 1.0}, parents, generator).adapter
            bank.write_member(len(members), child)
            members.append({"operator": arm, "seed": seed, "parent": level[better]})
    with open(arguments.out / "curves.jsonl", "w", encoding="utf-8") as file:
        for step in range(arguments.steps + 1):
            rate = None
            if step:
                rate = retention.step(bank, [f"child {m['seed']}" for m in members], step)
            if step in EVALUATE or step == arguments.steps:
                scores = retention.scores(bank, len(members))
                for member, score in zip(members, scores, strict=True):
                    file.write(json.dumps({**member, "step": step, "score": score}) + "\n")
                file.flush()
            say(f"children, step {step}" + (f": {rate:.2f}" if rate is not None else ""))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--parent-steps", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=12, help="tasks a member and step")
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--exam", type=int, default=150, help="tasks of the nano exam")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", help="a Hugging Face folder instead of the nano base")
    parser.add_argument("--seed-file", help="AZR's *_seed_io.jsonl, needed with --base")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    if bool(arguments.base) != bool(arguments.seed_file):
        parser.error("--base and --seed-file go together")
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with Referee() as referee:
        retention = Retention(arguments, referee)
        run(retention)
    settings = {key: value for key, value in vars(arguments).items() if key != "out"}
    settings["base_sha256"] = retention.base_sha256
    settings["minutes"] = round((time.monotonic() - retention.started) / 60, 1)
    settings["processor_minutes"] = round(time.process_time() / 60, 1)
    (arguments.out / "settings.json").write_text(json.dumps(settings, indent=1) + "\n")


if __name__ == "__main__":
    main()
