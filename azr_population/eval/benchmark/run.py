"""`azr-population benchmark`: targets x benchmarks by Inspect, then the table."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from inspect_ai import eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model, get_model

from azr_population.errors import UserError
from azr_population.eval.benchmark import table
from azr_population.eval.benchmark.benchmarks import (
    BENCHMARKS,
    find_benchmarks,
    locate,
    read_benchmark,
)
from azr_population.eval.benchmark.problem import NO_ANSWER
from azr_population.eval.benchmark.tasks import TASKS
from azr_population.eval.members import BASE, StoredMember, find_members, label_of
from azr_population.files import write_atomically
from azr_population.reading.run_data import RunData
from azr_population.registry import trust
from azr_population.runs import RunDirectory


@dataclass(frozen=True)
class BenchmarkSettings:
    """The options of `azr-population benchmark`, whose help has meanings and defaults. Fields
    with a default are not options."""

    benchmarks: str
    data: str
    members: str
    samples: int
    limit: int | None
    base: Path | None
    rollout: str
    dtype: str
    device: str
    max_tokens: int | None = None
    """Longest completion in tokens; None: the benchmark's."""
    batch_size: int = 64
    """Completions sampled at a time."""
    logs: Path | None = None
    """Folder of the logs; None: `evaluation` in the run."""

    def sampling(self) -> dict[str, Any]:
        """Inspect's options of generation."""
        several = {"temperature": 0.8, "seed": 1, "top_p": 0.95}
        options: dict[str, Any] = {"temperature": 0.0} if self.samples == 1 else several
        return options if self.max_tokens is None else {**options, "max_tokens": self.max_tokens}


def run_benchmarks(
    names: Sequence[str], settings: BenchmarkSettings, out: Path | None = None
) -> pd.DataFrame:
    """Asks the targets of these names (see `find_members`), prints the table, writes it to `out`,
    and returns the figures (see `table.figures`).

    What is in the logs is not asked again: after Ctrl-C the same command goes on.

    Raises UserError: nothing to ask, two targets of one name, an `out` that cannot be written, data
    that are missing, a grader that does not judge right, a model that cannot be asked.
    """
    if not names:
        raise UserError("name a run, a PEFT folder or a base; or --list", key="targets")
    trust(settings.rollout)
    benchmarks = [benchmark.name for benchmark in find_benchmarks(settings.benchmarks)]
    for label, count in Counter(_place(Path(name))[0] for name in names).items():
        if count > 1:
            raise UserError(
                f"{count} targets are called {label}, and their answers would count as one's; ask "
                "them in several calls, or rename a folder",
                key="targets",
            )
    if out:
        table.check_out(out)
    parts: list[pd.DataFrame] = []
    bases: dict[str, pd.DataFrame] = {}
    for name in names:
        label, folder = _place(Path(name))
        targets = _chosen(find_members(name, settings.base), settings.members)
        # Runs share their base: it is asked once.
        base = targets[0].weights
        new_targets = [target for target in targets if not (target.name == BASE and base in bases)]
        models = {target.name: _model(target, settings) for target in new_targets}
        log_folder = (settings.logs or folder) / "logs"
        logs = _ask(list(models.values()), benchmarks, settings, log_folder)
        titles = {str(model): title for title, model in models.items()}
        samples = table.read_samples(logs, titles).assign(label=label)
        if base in bases:
            samples = pd.concat([bases[base].assign(label=label), samples])
        else:
            bases[base] = samples[samples["model"] == BASE]
        parts.append(samples)
        _write_figures(folder / "figures.json", samples, settings, targets[0].run)
        _print_notes(samples, log_folder)
    figures = table.figures(pd.concat(parts))
    print(table.table(figures).reset_index().to_markdown(index=False))
    if out:
        table.write(figures, out)
        print(f"wrote {out}")
    return figures


def _place(path: Path) -> tuple[str, Path]:
    """The target's name in the table, and the folder of its figures and logs."""
    label, is_run = label_of(path), RunDirectory(path).exists
    return label, path / "evaluation" if is_run else Path("evaluations") / label


def _chosen(targets: Sequence[StoredMember], members: str) -> list[StoredMember]:
    """The base and these members, of which the single agent counts as teacher and as student.
    Raises UserError: there are none."""
    other_role = {"teachers": "student_", "students": "teacher_"}.get(members, "-")
    chosen = [target for target in targets if not target.name.startswith(other_role)]
    if len(chosen) == 1 < len(targets):
        names = ", ".join(target.name for target in targets)
        raise UserError(f"--members={members}: there are none, only {names}", key="members")
    return chosen


def _model(target: StoredMember, settings: BenchmarkSettings) -> Model:
    return get_model(
        f"azrpop/{target.folder or target.base}",
        dtype=settings.dtype,
        device=settings.device,
        rollout=settings.rollout,
        batch_size=settings.batch_size,
        base=str(settings.base or ""),
        weights=target.weights,
    )


def _ask(
    models: Sequence[Model], benchmarks: Sequence[str], settings: BenchmarkSettings, folder: Path
) -> list[EvalLog]:
    """Inspect's logs of all models at all benchmarks. Raises UserError where one is not whole."""
    tasks = []
    for name in benchmarks:
        identity = read_benchmark(name, settings.data).identity
        for model in models:
            task = TASKS[name](data=settings.data, identity=identity)
            task.model = model
            tasks.append(task)
    if not tasks:
        return []
    done, logs = eval_set(
        tasks,
        log_dir=str(folder),
        log_dir_allow_dirty=True,
        retry_attempts=0,
        retry_immediate=False,
        continue_on_fail=True,
        limit=settings.limit,
        epochs=settings.samples,
        max_tasks=len(tasks),
        max_connections=1024,
        **settings.sampling(),
    )
    failed = [log for log in logs if log.status != "success"]
    recovery_hint = f"Finished samples are in {folder}; the same command continues"
    # Inspect catches Ctrl-C, and then returns fewer logs and says that all is done.
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in failed):
        print(recovery_hint)
        raise KeyboardInterrupt
    if failed or not done:
        why = "; ".join(f"{log.eval.model}, {log.eval.task}: {_fault(log)}" for log in failed)
        raise UserError(f"{why}. {recovery_hint}")
    return logs


def _fault(log: EvalLog) -> str:
    """A line on why the log is not whole: its error, or how many samples have one and the first."""
    if log.error:
        return log.error.message.splitlines()[0]
    samples = read_eval_log_sample_summaries(log.location)
    errors = [sample.error for sample in samples if sample.error]
    if not errors:
        return log.status
    first = errors[0].splitlines()[0]
    return f"{len(errors)} of {len(samples)} samples have an error, the first: {first}"


def _write_figures(
    path: Path, samples: pd.DataFrame, settings: BenchmarkSettings, run: RunData | None
) -> None:
    """Writes what `compare` and `push` read; summaries first: `compare` takes the members' mean."""
    ordered = table.figures(samples).sort_values(
        "role", key=lambda role: role != "summary", kind="stable"
    )
    lines = []
    for (model, role, k), group in ordered.groupby(["model", "role", "k"], sort=False):
        cells = group.set_index("column")[["value", "low", "high", "problems"]].astype(object)
        lines.append({"model": model, "role": role, "k": int(k)})
        lines[-1]["cells"] = cells.where(cells.notna(), None).to_dict("index")
    about = [
        {
            "name": name,
            "title": BENCHMARKS[name].title,
            "data": identity,
            "prompt": BENCHMARKS[name].prompt,
            "max_tokens": settings.max_tokens or BENCHMARKS[name].max_tokens,
            "limit": settings.limit,
            "hub": BENCHMARKS[name].hub,
        }
        for name, identity in dict(zip(samples["benchmark"], samples["data"], strict=True)).items()
    ]
    content = {
        "step": run.stored_step if run else None,
        "benchmarks": about,
        "samples": settings.samples,
        "temperature": settings.sampling()["temperature"],
        "lines": lines,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def _print_notes(samples: pd.DataFrame, logs: Path) -> None:
    """Prints how many completions had no answer or were cut off."""
    for name, group in samples.groupby("benchmark", sort=False):
        for column, value, fault in (
            ("reason", NO_ANSWER, "have no answer in the right form"),
            ("stop_reason", "max_tokens", "were cut off at the limit of tokens"),
            ("stop_reason", "model_length", "do not fit the model's context"),
        ):
            if count := (group[column] == value).sum():
                print(f"{BENCHMARKS[str(name)].title}: {count} of {len(group)} {fault}")
    print(f"every sample: inspect view --log-dir {logs}")


def list_benchmarks(settings: BenchmarkSettings) -> None:
    """Prints the benchmarks, which data are present, and where to get the rest."""
    rows = []
    for benchmark in find_benchmarks(settings.benchmarks):
        row = {"benchmark": benchmark.name, "area": benchmark.area, "prompt": benchmark.prompt}
        if locate(benchmark, settings.data):
            read = read_benchmark(benchmark.name, settings.data)
            rows.append(row | {"problems": len(read.problems), "data": read.identity})
        else:
            missing = f"missing: {benchmark.files[0]}, from {benchmark.source}"
            rows.append(row | {"problems": 0, "data": missing})
    print(pd.DataFrame(rows).to_markdown(index=False))
