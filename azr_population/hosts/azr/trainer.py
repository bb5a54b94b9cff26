"""AZR's trainer with a population in the place of its one model. `fit` stays AZR's.

AZR's TaskRunner makes it, in its own Ray process. Overridden are: the start of workers, the loaders
(whose rows get members), the computing of a batch (routing, matches, advantages by member),
validation (which student takes it) and checkpoints (the run directory goes with them).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from absolute_zero_reasoner.trainer.ppo.azr_ray_trainer import CodeIORayPPOTrainer, marked_timer
from omegaconf import OmegaConf, open_dict
from verl import DataProto
from verl.utils.seqlen_balancing import log_seqlen_unbalance

from azr_population.console.view import LinesView, show_start, show_step
from azr_population.engines.base_model import set_prompt_date
from azr_population.engines.engine import Completion, PromptBatch
from azr_population.engines.workers.ray_engine import RayEngine
from azr_population.errors import UserError
from azr_population.hosts.azr.azr_plan import AzrPlan
from azr_population.hosts.azr.azr_step import AzrStepState
from azr_population.hosts.azr.batches import by_member, prompt_rows
from azr_population.hosts.azr.checks import too_few_rows
from azr_population.hosts.azr.facade import PopulationWorkerGroup
from azr_population.hosts.azr.judging import Judge
from azr_population.hosts.azr.run_folder import open_run, record_settings, refuse_to_erase
from azr_population.hosts.azr.settings import plain_values
from azr_population.hosts.loggers import step_figures
from azr_population.method.callbacks import Warn, declared, own_callbacks
from azr_population.method.completion_log import CompletionLog
from azr_population.method.evolution import make_child
from azr_population.method.member_folders import MemberFolders
from azr_population.method.population import Population
from azr_population.patches.azr_fixes import apply_patches
from azr_population.printable import redact
from azr_population.registry import imported, trust
from azr_population.runs.azr_log import VALIDATION
from azr_population.runs.checkpoint import EARLIER_INSIDE_AZR
from azr_population.runs.records import mean

ACTOR = {
    "loss": "actor/pg_loss",
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "lr": "actor/lr",
    "kl_loss": "actor/kl_loss",
}
"""A figure of a member's update -> stock AZR's key for its actor's. Of its others nothing clips
(`pg_clipfrac`, `ppo_kl`), and `perf/` is of workers that do not run."""


class PopulationTrainer(CodeIORayPPOTrainer):
    """`CodeIORayPPOTrainer` whose proposals come from teachers and whose answers from students."""

    judge: Judge
    config: Any
    _executor: Any
    reward_fn: Any
    tokenizer: Any
    global_steps: int
    total_training_steps: int

    def __init__(self, plan: AzrPlan, *args: Any, **kwargs: Any) -> None:
        """Takes the plan and the arguments of AZR's own trainer."""
        config = kwargs["config"]
        self.plan, self.settings = plan, plan.settings
        trust(self.settings)
        # AZR's TaskRunner runs in a process of its own, which has not seen the driver's patches.
        patches = apply_patches(self.settings.referee)
        kwargs["device_name"] = config.trainer.get("device", "cuda")
        strategy = config.azr.data_selection_strategy
        with open_dict(config):
            config.data.train_batch_size = plan.rows
            strategy.data_len = config.data.train_batch_size * strategy.update_iteration
        # AZR's data sets and reward managers have this tokenizer too.
        if set_prompt_date(kwargs["tokenizer"], plan.engine.prompt_date):
            day = f"population.prompt_date={plan.engine.prompt_date}"
            print(f"azr-population: the chat template asks for the date, and gets {day}")
        super().__init__(*args, **kwargs)
        self.population = Population(plan.config, plan.domain)
        log = CompletionLog(self.settings.log_completions, self.tokenizer)
        callbacks = own_callbacks(self.settings.callbacks)
        self.step = AzrStepState(self.population, [log, *callbacks])
        folder = (Path(self.config.trainer.default_local_dir) / "population").absolute()
        resumes = self.config.trainer.resume_mode != "disable"
        path = Path(self.settings.run_dir or folder)
        steps = {"total_training_steps": self.total_training_steps}  # null is AZR's default
        played = OmegaConf.merge(self.config, {"population": plan.decided, "trainer": steps})
        self._played = redact(plain_values(played))
        facts = {"patches": list(patches), **declared(callbacks)}
        self.directory = open_run(self._played, path, facts, resumes)
        self.step.callbacks.append(Warn(self.directory, uses_replay=True))
        self.view = LinesView(prefix="population: ")
        self._timing: Mapping[str, float] = {}
        self._next_batches: dict[str, deque[dict[str, Any]]] = {}
        self._validated_at, self._validated = -1, dict[str, dict[str, Any]]()

    def init_workers(self) -> None:
        """Starts our workers in the place of veRL's; there are no others."""
        settings, config, worker = self.settings, self.config, self.plan.engine
        self.engine = RayEngine(
            worker,
            [config.trainer.n_gpus_per_node] * config.trainer.nnodes,
            imported("population.worker", settings.worker),
            driver_cpus=1,  # of AZR's TaskRunner, which this trainer is in
        )
        print(f"azr-population: {', '.join(worker.names)} on {', '.join(self.engine.places)}")
        self._folders = MemberFolders(
            self.population, self.engine.read, self.directory, worker.base
        )
        pad = self.tokenizer.pad_token_id
        self.group = PopulationWorkerGroup(
            self.engine,
            self.population,
            self.tokenizer.eos_token_id if pad is None else pad,
            max_new_tokens=config.data.max_response_length,
            validation_temperature=OmegaConf.select(
                config, "actor_rollout_ref.rollout.val_kwargs.temperature", default=0.0
            ),
            after_update=self._after_update,
        )
        self.actor_rollout_wg = self.group
        self.async_rollout_mode = False
        banned = config.azr.data_selection_strategy.banned_words or []
        self.judge = Judge(self.reward_fn, self.step, self.group, banned)
        self.reward_fn = self.judge

    def fit(self) -> None:
        """AZR's, and the members and the report at its end."""
        result = {"status": "failed", "dir": str(self.directory.path)}
        try:
            with self.directory.locked():
                super().fit()
                self._folders.export()
                # Imported late: pandas and Altair take seconds.
                from azr_population.analysis.report import write_report

                result |= {"status": "finished", "report": str(write_report(self.directory.path))}
        finally:
            self.view.on_end(result)

    def _create_dataloader(self) -> None:
        """AZR's loaders, which leave out rows above `data.max_prompt_length` and assert that there
        is a batch. Raises UserError: there is none."""
        try:
            super()._create_dataloader()
        except (AssertionError, ValueError):
            data = self.config.data
            for split, batch in (("train", data.train_batch_size), ("val", 1)):
                held = len(getattr(self, f"{split}_dataset", range(batch)))
                if held < batch:
                    files = f"{data[f'{split}_files']} with {data.max_prompt_length=}"
                    raise too_few_rows(split, files, held, batch) from None
            raise

    def _validate_config(self) -> None:
        """AZR's checks, but for those on rows and GPUs: our groups split and pad rows."""
        with self._config_with({"trainer": {"n_gpus_per_node": 1, "nnodes": 1}}):
            super()._validate_config()

    @contextmanager
    def _config_with(self, changes: dict[str, Any]) -> Iterator[None]:
        """Inside, AZR's code sees another configuration."""
        whole = self.config
        self.config = OmegaConf.merge(whole, changes)
        try:
            yield
        finally:
            self.config = whole

    def _balance_batch(self, batch: DataProto, metrics: dict, *more: Any, **named: Any) -> None:
        """Rows stay in their order, as our engine spreads them; veRL's figures of them stay too."""
        lengths = batch.batch["attention_mask"].sum(dim=-1).tolist()
        rows = list(range(len(lengths)))
        metrics |= log_seqlen_unbalance(lengths, [rows], prefix="global_seqlen")

    def _create_train_code_gen_dataloader(
        self, problem_type: str, data_len: int, dataset_key: Any = None, seeding: bool = False
    ) -> Iterator[dict[str, Any]]:
        """AZR's loader of proposal prompts, for all teachers at once; seeding is left as it is."""
        make = super()._create_train_code_gen_dataloader
        if seeding:
            return make(problem_type, data_len, dataset_key, seeding)
        self._begin_step()
        slots = [member.slot for member in self.population.roster.teachers]
        rows = len(slots) * self.plan.member_rows
        times = rows // self.config.data.train_batch_size
        with self._config_with({"data": {"train_batch_size": rows}}):
            loader = make(problem_type, times * data_len, dataset_key, seeding)
        return self._queue(f"gen_{problem_type}", by_member([(slots, loader)]))

    def _create_train_code_pred_dataloader(
        self, problem_type: str, data_len: int
    ) -> Iterator[dict[str, Any]]:
        """AZR's loader of tasks to solve, drawn for each student by itself.

        A student of a population solves twice as many rows as the single agent, in two of AZR's own
        draws, because a draw has no repeats and the data may hold only enough for one.
        """
        self._begin_step()
        make = super()._create_train_code_pred_dataloader
        draws = self.plan.member_rows // self.plan.rows
        slots = [m.slot for m in self.population.roster.students for _ in range(draws)]
        loaders = [([slot], make(problem_type, data_len)) for slot in slots]
        return self._queue(f"pred_{problem_type}", by_member(loaders))

    def _queue(self, name: str, batches: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The batches that AZR takes in this round; `_generate_ahead` looks at the next one."""
        count = int(self.config.azr.data_selection_strategy.update_iteration)
        held = self._next_batches[name] = deque(islice(batches, count))
        if len(held) < count:
            raise UserError(
                f"{name}: AZR has prompts for {len(held)} of {count} batches; it leaves out those "
                "of more than data.max_prompt_length tokens, so raise that, or lower "
                "azr.data_selection_strategy.content_max_length"
            )
        return iter(held.popleft, None)

    def _compute_batch(
        self, batch: DataProto, metrics: dict, timing_raw: dict, problem_type: str, executor: Any
    ) -> tuple[DataProto, dict]:
        """AZR's, with every row written by its member and advantages by member."""
        self._begin_step()
        self._timing = timing_raw
        if problem_type not in self.group.ahead:
            with marked_timer(f"gen/{problem_type}", timing_raw):  # AZR adds its own call's
                self._generate_ahead(problem_type, batch)
        self.step.assign(batch, problem_type)
        with self.group.routed(problem_type):
            batch, metrics = super()._compute_batch(
                batch, metrics, timing_raw, problem_type, executor
            )
        metrics.pop("actor/entropy", None)  # see `PopulationWorkerGroup.compute_log_prob`
        # Of one batch, and veRL 0.9.1 joins only batches that agree in it; nobody of ours reads it.
        batch.meta_info.pop("global_token_num", None)
        self.step.write_advantages(batch, problem_type)
        return batch, metrics

    def _generate_ahead(self, problem_type: str, batch: DataProto) -> None:
        """Has the batch generated, and with `merge_calls` in the same call those that AZR takes
        later in the step; programs in what is written run meanwhile."""
        batches = {problem_type: batch}
        if self.settings.merge_calls:
            for name, held in self._next_batches.items():
                if name != problem_type:
                    batches[name] = DataProto.from_single_dict(held[0])

        def run_ahead(name: str, row: int, completion: Completion) -> None:
            prompt = batches[name].select_idxs([row])
            self.judge.run_ahead(name, self.group.output(prompt, [completion]))

        prompts = {
            name: PromptBatch(
                prompt_rows(data.batch), self.step.assign(data, name), range(len(data))
            )
            for name, data in batches.items()
        }
        written = self.group.prefetch(prompts, run_ahead)
        later = [name for name in batches if name.startswith("gen") and name != problem_type]
        self.judge.expected = {n: self.group.output(batches[n], written[n]) for n in later}

    def _validate(self) -> dict[str, Any]:
        """AZR's validation, taken by the students that `population.validate_members` names, and
        recorded; what AZR logs is that of the student with the best rating."""
        best, which = self.population.best_student(), self.settings.validate_members
        # Before its last validation AZR has counted on.
        at_end = which == "last_all" and self.global_steps >= self.total_training_steps
        everyone = self.population.roster.students if which == "all" or at_end else [best]
        if self._validated_at != self.population.step:
            self._validated_at, self._validated = self.population.step, {}
        rows, scores = [], {}
        for student in sorted(everyone, key=lambda member: member.name == best.name):
            # AZR validates after the last step, and at its end again.
            is_new = student.name not in self._validated
            if is_new:
                self.group.default = student.slot
                self._validated[student.name] = super()._validate()
                self.group.default = 0  # seed tasks, after a validation before the first step
            figures = self._validated[student.name]
            shares = {
                key.removeprefix(VALIDATION): float(value)
                for key, value in figures.items()
                if key.startswith(VALIDATION)
            }
            if is_new:
                row = {"step": self.population.step, "member": student.name, "shares": shares}
                rows.append(row)
            if shares:
                scores[student.name] = mean(shares.values()) or 0.0
        if scores:
            self._folders.keep_best(scores)
        self.directory.append("validations", rows)
        return figures

    def _save_checkpoint(self) -> None:
        """AZR's checkpoint, with the population in its `actor` folder, and the members' folders."""
        # AZR's last one comes after it has counted on; resumed from there a step would be missing.
        counted, self.global_steps = self.global_steps, self.population.step
        try:
            super()._save_checkpoint()
        finally:
            self.global_steps = counted
        self._folders.export()

    def _load_checkpoint(self) -> None:
        """AZR's, and the run directory cut back to the step of the checkpoint; the console starts
        there."""
        super()._load_checkpoint()
        step = self.global_steps
        if step:
            self.directory.refuse_lost_steps(step, EARLIER_INSIDE_AZR)
        else:
            refuse_to_erase(self.directory, self._played)
            self.population.load_founders(self.engine.read, self.engine.write)
        self.directory.truncate(step)
        # AZR plays the steps below its total.
        name, steps = self.settings.name, self.total_training_steps - 1
        self._played["trainer"]["total_training_steps"] = steps
        record_settings(self.directory, self._played)
        show_start(self.view, self.directory, name, steps, step, self.population)

    def _begin_step(self) -> None:
        """Once per step, whichever of AZR's calls comes first: matches, and its random streams."""
        if self.population.step == self.global_steps:
            return
        self.step.begin(self.global_steps)
        self.group.begin_step(self.global_steps)
        self.judge.begin_step(self._executor)
        # AZR draws its prompts from the process's global generators, which nobody seeds or saves.
        seed = self.population.streams.integer("azr", self.global_steps) & 0xFFFFFFFF
        random.seed(seed)
        np.random.seed(seed)

    def _after_update(self, updates: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
        """The end of the step: ratings, births, records; AZR's logger gets what is returned."""
        self.judge.executor.close()
        records = self.step.end(
            updates, self.group.generated, partial(make_child, self.engine), self._timing
        )
        step = records.metrics
        records.append_to(self.directory)
        show_step(self.view, step, records.matches, records.lineage, records.notes)
        figures = {
            key: mean(own[name] for own in updates.values() if own.get("updates") and name in own)
            for name, key in ACTOR.items()
        }
        # AZR logs times of its own.
        figures |= {k: v for k, v in step_figures(step).items() if not k.startswith("time/")}
        return {key: value for key, value in figures.items() if value is not None}
