"""Is a base fit for self-play?

    python tools/bases/gate.py look FOLDER
    python tools/bases/gate.py train FOLDER right|learn|frozen|single [CONFIG=VALUE ...]

`look`: operations by length, the base's own proposals and how it solves them, held-out tasks by
depth. `train`: a student learns right answers to tasks of mixed depths, or a run is played.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from random import Random
from typing import Any

import torch

from azr_population.config.load import load_config
from azr_population.config.schema import TaskConfig
from azr_population.domains.code import chains
from azr_population.domains.code.chain_tasks import EVAL_DEPTHS, draw_tasks
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import base_format
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.format import read_proposal
from azr_population.engines.assembly import text_engine
from azr_population.engines.engine import (
    Completion,
    EngineSettings,
    Hyperparameters,
    Sampling,
    TrainingSample,
)
from azr_population.hosts.local.local_plan import resolve
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.held_out_eval import all_known, solved_shares
from azr_population.method.phases import StepContext
from azr_population.method.step import SelfPlay
from azr_population.referee import Referee
from azr_population.weights.adapter import LoraSpec

EVAL_SEED = 9292


def shares(keys: Sequence[Hashable], values: Sequence[float]) -> dict[Any, tuple[float, int]]:
    """By key the mean of its values and their number."""
    by_key: dict[Any, list[float]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        by_key[key].append(value)
    return {key: (round(sum(v) / len(v), 3), len(v)) for key, v in sorted(by_key.items())}


def depth(task: Task) -> int:
    return len(task.program.split("\n")) - 2


def look(folder: str, per_operation: int, per_depth: int, depths: int, proposals: int) -> None:
    """Prints the figures of a bare base."""
    settings = EngineSettings(folder, ("base",), LoraSpec(1, 1.0, ("all-linear",)))
    engine = text_engine(settings, [torch.Generator().manual_seed(0)], False)
    with Referee() as referee:
        format = Code().format(base_format(folder, engine.tokenizer))
        context = StepContext(engine, referee, Code(), format)
        operations = by_operation(context, per_operation)
        print("operations below .99:", {k: v for k, v in operations.items() if v[0] < 0.99})
        for type in TaskType:
            tasks = held_out(type, per_depth, depths)
            greedy = all_known(solved_shares(context, tasks, 0, 0.0, 1, 5))
            print(type, "held out, greedy, by depth:", shares([depth(t) for t in tasks], greedy))
            print(type, json.dumps(proposed(context, type, proposals)), flush=True)


def by_operation(context: StepContext, count: int) -> dict[Any, tuple[float, int]]:
    """Greedy shares of programs of one statement, by operation and length."""
    rng = Random("operations")
    tasks, keys = list[Task](), list[str]()
    for name in chains.OPERATIONS:
        for length in range(chains.MIN_LENGTH, chains.MAX_LENGTH + 1):
            while keys.count(f"{name} {length}") < count:
                x = [rng.randrange(10) for _ in range(length)]
                chain = [chains.Statement(rng.choice(chains.LETTERS), name)]
                value = str(chains.run(chain, x)[-1])
                if value != str(x):
                    tasks.append(Task("code_o", chains.source(chain), (str(x),), (value,)))
                    keys.append(f"{name} {length}")
    return shares(keys, all_known(solved_shares(context, tasks, 0, 0.0, 1, 5)))


def held_out(type: str, per_depth: int, depths: int = EVAL_DEPTHS) -> list[Task]:
    rng = Random(f"held out {EVAL_SEED} {type}")
    return [
        draw_tasks(rng, type, 1 + number // per_depth, held_out=True)[0]
        for number in range(depths * per_depth)
    ]


def proposed(context: StepContext, type: str, count: int) -> dict[str, Any]:
    """What the base proposes, and solves of it at temperature 1, by depth."""
    format, engine = context.format, context.engine
    limit = format.max_new_tokens(type, "propose")
    written = engine.generate(
        [format.propose_prompt(type)] * count, [0] * count, Sampling(limit), 5
    )
    parsed = [read_proposal(format, type, completion) for (completion,) in written]
    some = [p for p in parsed if p]
    rules = context.domain.with_defaults(TaskConfig(), context.format)
    judged = iter(context.domain.judge(some, context.referee, rules))
    verdicts = [next(judged) if p else "unparsed" for p in parsed]
    lines = [completion.text.count(" = ") for (completion,) in written]
    tasks = [verdict for verdict in verdicts if isinstance(verdict, Task)]
    rates = all_known(solved_shares(context, tasks, 0, 1.0, 4, 5))
    return {
        "valid by depth": shares(lines, [float(isinstance(v, Task)) for v in verdicts]),
        "refused": Counter(v for v in verdicts if not isinstance(v, Task)),
        "unique": len({(task.program, task.inputs) for task in tasks}) / max(1, len(tasks)),
        "solved by depth": shares([depth(task) for task in tasks], rates),
        "solved": sum(rates) / max(1, len(rates)),
        "mean depth": sum(map(depth, tasks)) / max(1, len(tasks)),
    }


def train(args: argparse.Namespace) -> None:
    """Prints a line every ten steps, and the student's greedy shares by depth every `every`."""
    arm, depths = args.arm, args.depths
    config = load_config(
        [
            f"population={'single' if arm == 'single' else '1t1s'}",
            "base=nano",
            f"base.path={args.folder}",
            "task=code_o",
            "eval.every=0",
            f"seed={args.seed}",
            f"run.steps={args.steps}",
            *(["population.teacher_lr=0"] if arm == "frozen" else []),
            *args.overrides,
        ]
    )
    plan = resolve(config)
    torch.set_num_threads(plan.config.engine.threads)
    exam = held_out(TaskType.CODE_O, args.per_depth, depths)
    rng, start = Random(f"right {args.seed}"), time.time()
    with StepContext.open(plan, open_engine(plan)) as context:
        game = SelfPlay(plan.config, context, exam)
        (student,) = game.population.roster.students
        for step in range(args.steps + 1):
            line: dict[str, Any] = {"step": step}
            if step and arm == "right":
                learn_right_answers(game, rng, student.slot, depths)
            elif step:
                metrics = game.play_step().metrics
                wanted = ("valid_frac", "solve_rate", "lines")
                line |= {k: round(v, 3) for k, v in metrics.items() if k.endswith(wanted)}
            if step % args.every == 0 or step == args.steps:
                greedy = all_known(solved_shares(context, exam, student.slot, 0.0, 1, 5))
                by_depth = {
                    k: mean for k, (mean, _) in shares(list(map(depth, exam)), greedy).items()
                }
                means, half = list(by_depth.values()), depths // 2
                line |= {
                    "greedy": by_depth,
                    "lower half": round(sum(means[:half]) / half, 4),
                    "upper half": round(sum(means[half:]) / (depths - half), 4),
                }
            if step % 10 == 0 or "greedy" in line:
                print(json.dumps(line), f"{time.time() - start:.0f} s", flush=True)


def learn_right_answers(game: SelfPlay, rng: Random, slot: int, depths: int) -> None:
    """One update of a member on right answers to a batch of tasks of all depths."""
    budget, context = game.config.population, game.context
    engine, format = context.engine, context.format
    tasks = [
        draw_tasks(rng, TaskType.CODE_O, rng.randint(1, depths))[0]
        for _ in range(budget.batch_size)
    ]
    prompts = engine.encode([format.solve_prompt(task) for task in tasks])
    answers = [format.write_answer(task) for task in tasks]
    encoded = engine.tokenizer(answers, add_special_tokens=False)["input_ids"]
    responses = [[*ids, engine.tokenizer.eos_token_id] for ids in encoded]
    chosen = engine.engine.log_probs(prompts, responses, [slot] * len(tasks))
    rows = [
        TrainingSample(Completion(slot, tuple(prompt), tuple(ids), tuple(found.tolist()), True), 1)
        for prompt, ids, found in zip(prompts, responses, chosen, strict=True)
    ]
    engine.update({slot: rows}, {slot: Hyperparameters(budget.student_lr)})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("look", "train"))
    parser.add_argument("folder")
    parser.add_argument("arm", nargs="?", choices=("right", "learn", "frozen", "single"))
    parser.add_argument("overrides", nargs="*", metavar="CONFIG=VALUE")
    parser.add_argument("--per-operation", type=int, default=100)
    parser.add_argument("--per-depth", type=int, default=100)
    parser.add_argument("--depths", type=int, default=EVAL_DEPTHS)
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    if args.what == "look":
        look(args.folder, args.per_operation, args.per_depth, args.depths, args.proposals)
    elif args.arm is None:
        parser.error("train needs an arm: right, learn, frozen or single")
    else:
        train(args)


if __name__ == "__main__":
    main()
