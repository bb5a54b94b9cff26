"""`azr-population benchmark`: targets x benchmarks by Inspect, then the table."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from inspect_ai import eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model

from azr_population.errors import UserError
from azr_population.evals import table
from azr_population.evals.benchmarks import BENCHMARKS, find_benchmarks, locate, read_benchmark
from azr_population.evals.grading.sandbox import NO_ANSWER
from azr_population.evals.prompts import TEMPLATES, find_template, templates_for
from azr_population.evals.targets import BASE, find_target, find_targets
from azr_population.evals.tasks import TASKS
from azr_population.files import write_atomically
from azr_population.registry import trust


@dataclass(frozen=True)
class BenchmarkSettings:
    """The options of `azr-population benchmark`."""

    benchmarks: str = "all"
    """Names and areas, comma-separated; `all` is the paper's ten."""
    data: str = ""
    """Folder of the benchmarks' files."""
    prompts: str = ""
    """Template names, comma-separated; each benchmark has its own by default."""
    members: str = "all"
    samples: int = 1
    temperature: float | None = None
    """Default 0 (greedy) with one sample, 0.8 with several."""
    top_p: float | None = None
    max_tokens: int | None = None
    limit: int | None = None
    """First problems of each benchmark."""
    seed: int = 1
    base: Path | None = None
    rollout: str = "torch"
    dtype: str = "float32"
    device: str = "cpu"
    batch_size: int = 64
    server: str = ""
    """URL of an OpenAI-compatible server (`.../v1`), whose models the targets are."""
    timeout: int = 3600
    """Seconds for one answer of a server."""
    retries: int = 3
    """Of a request to a server."""
    logs: Path | None = None
    display: Any = None
    """Inspect's: full, rich, plain, none."""

    def sampling(self) -> dict[str, Any]:
        """Inspect's options of generation. Raises UserError where they contradict each other."""
        temperature = self.temperature
        if temperature is None:
            temperature = 0.0 if self.samples == 1 else 0.8
        if temperature == 0 and self.samples > 1:
            raise UserError(
                f"samples={self.samples} at temperature 0 are all the same; give --temperature",
                key="temperature",
            )
        options = {"temperature": temperature, "max_tokens": self.max_tokens}
        if temperature:
            options |= {"seed": self.seed, "top_p": self.top_p or 0.95}
        return {name: value for name, value in options.items() if value is not None}


def run_benchmarks(
    targets: Sequence[str], settings: BenchmarkSettings, out: Path | None = None
) -> pd.DataFrame:
    """Asks the targets (runs, PEFT folders, bases; models of `settings.server`), prints the table,
    writes it to `out`, and returns the figures (see `table.figures`).

    What is in the logs is not asked again: after Ctrl-C the same command goes on.

    Raises UserError: nothing to ask, data that are missing, a grader that does not judge right, a
    model that cannot be asked.
    """
    if out and out.suffix not in table.FORMATS:
        raise UserError(f"--out={out}: it must end in {', '.join(table.FORMATS)}", key="out")
    if not targets:
        raise UserError("name a run, a PEFT folder or a base; or --list", key="targets")
    trust(settings.rollout)
    benchmarks = _benchmarks(settings)
    parts: list[pd.DataFrame] = []
    bases: dict[str, pd.DataFrame] = {}
    for names in [targets] if settings.server else [[target] for target in targets]:
        label, folder, models = _models(names, settings)
        base = next((m.weights for m in models if m.name == BASE), "")
        # Runs share their base: it is asked once.
        asked = [m for m in models if not (m.name == BASE and base in bases)]
        log_folder = (settings.logs or folder) / "logs"
        logs = _ask(asked, benchmarks, settings, log_folder)
        samples = table.read_samples(
            logs, {str(model): (label, m.name) for m in asked for model in (m.chat, m.plain)}
        )
        if base in bases:
            samples = pd.concat([bases[base].assign(label=label), samples])
        elif base:
            bases[base] = samples[samples["model"] == BASE]
        parts.append(samples)
        _write_figures(folder / "figures.json", table.figures(samples), benchmarks, settings)
        _print_notes(samples, log_folder)
    figures = table.figures(pd.concat(parts))
    print(table.table(figures).reset_index().to_markdown(index=False))
    if out:
        table.write(figures, out)
        print(f"wrote {out}")
    return figures


@dataclass(frozen=True)
class _Asked:
    """A model, for chat prompts and for plain ones."""

    name: str
    weights: str
    chat: Model
    plain: Model


def _models(names: Sequence[str], settings: BenchmarkSettings) -> tuple[str, Path, list[_Asked]]:
    """Label, folder of the records, and models that names stand for."""
    if settings.server:
        label = settings.server.split("://")[-1].strip("/").replace("/", "_")
        key = os.environ.get("OPENAI_API_KEY") or "none"
        models = []
        for name in names:
            chat, plain = (
                get_model(f"{provider}/server/{name}", base_url=settings.server, api_key=key)
                for provider in ("openai-api", "openai-api-completions")
            )
            models.append(_Asked(name, "", chat, plain))
        return label, Path("evaluations") / label, models
    path = Path(names[0])
    members, base = settings.members, settings.base
    chosen = find_targets(path, members, base) if path.exists() else [find_target(names[0], base)]
    models = []
    for target in chosen:
        model = get_model(
            f"azrpop/{target.folder or target.base}",
            dtype=settings.dtype,
            device=settings.device,
            rollout=settings.rollout,
            batch_size=settings.batch_size,
            base=str(base or ""),
            weights=target.weights,
        )
        models.append(_Asked(target.name, target.weights, model, model))
    parts = path.resolve().parts
    label = "_".join(parts[-2:]) if parts[-1].startswith("seed_") else parts[-1]
    is_run = (path / "config.yaml").is_file()
    return label, path / "evaluation" if is_run else Path("evaluations") / label, models


def _ask(
    models: Sequence[_Asked], benchmarks: dict[str, str], settings: BenchmarkSettings, folder: Path
) -> list[EvalLog]:
    """Inspect's logs of all models at all benchmarks. Raises UserError where one is not whole."""
    tasks = []
    for name, prompt in benchmarks.items():
        problems = read_benchmark(name, settings.data).problems
        chat = find_template(prompt, name).make(problems[0]).chat
        for model in models:
            task = TASKS[name](data=settings.data, prompt=prompt)
            task.model = model.chat if chat else model.plain
            tasks.append(task)
    if not tasks:
        return []
    options: dict[str, Any] = settings.sampling()
    if settings.server:
        options |= {"attempt_timeout": settings.timeout, "max_retries": settings.retries}
    else:
        options["max_connections"] = 1024
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
        display=settings.display,
        **options,
    )
    failed = [log for log in logs if log.status != "success"]
    way_on = f"Finished samples are in {folder}; the same command continues"
    # Inspect catches Ctrl-C, and then returns fewer logs and says that all is done.
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in failed):
        print(way_on)
        raise KeyboardInterrupt
    if failed or not done:
        why = "; ".join(
            f"{log.eval.model}, {log.eval.task}: "
            + (log.error.message.splitlines()[0] if log.error else log.status)
            for log in failed
        )
        raise UserError(f"{why}. {way_on}")
    return logs


def _benchmarks(settings: BenchmarkSettings) -> dict[str, str]:
    """The chosen benchmarks and their templates by name; '' is the benchmark's default. Raises
    UserError for an unknown one."""
    prompts = dict.fromkeys(
        (candidate.name for candidate in find_benchmarks(settings.benchmarks)), ""
    )
    for name in filter(None, (part.strip() for part in settings.prompts.split(","))):
        suitable = [benchmark for benchmark in prompts if name in templates_for(benchmark)]
        if not suitable:
            names = ", ".join(TEMPLATES)
            raise UserError(
                f"prompts={name} is for none of these benchmarks; there are {names}", key="prompts"
            )
        prompts |= dict.fromkeys(suitable, name)
    return prompts


def _write_figures(
    path: Path, figures: pd.DataFrame, benchmarks: dict[str, str], settings: BenchmarkSettings
) -> None:
    """What `compare` and `push` read; summaries first, as `compare` takes the members' mean."""
    ordered = figures.sort_values("role", key=lambda role: role != "summary", kind="stable")
    lines = []
    for (model, role, k), group in ordered.groupby(["model", "role", "k"], sort=False):
        cells = group.set_index("column")[["value", "low", "high", "problems"]].to_dict("index")
        lines.append({"model": model, "role": role, "k": int(k), "cells": cells})
    about = [
        {
            "name": name,
            "title": BENCHMARKS[name].title,
            "data": read_benchmark(name, settings.data).identity,
            "prompt": prompt or BENCHMARKS[name].prompt,
            "max_tokens": settings.max_tokens or BENCHMARKS[name].max_tokens,
            "limit": settings.limit,
        }
        for name, prompt in benchmarks.items()
    ]
    content = {
        "benchmarks": about,
        "samples": settings.samples,
        "temperature": settings.sampling()["temperature"],
        "lines": lines,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1) + "\n")


def _print_notes(samples: pd.DataFrame, logs: Path) -> None:
    """Prints how many completions had no answer or were cut off."""
    for name, group in samples.groupby("benchmark", sort=False):
        for column, value, what in (
            ("reason", NO_ANSWER, "have no answer in the right form"),
            ("stop_reason", "max_tokens", "were cut off at the limit of tokens"),
            ("stop_reason", "model_length", "do not fit the model's context"),
        ):
            if count := (group[column] == value).sum():
                print(f"{BENCHMARKS[str(name)].title}: {count} of {len(group)} {what}")
    print(f"every sample: inspect view --log-dir {logs}")


def list_benchmarks(settings: BenchmarkSettings) -> None:
    """Prints the benchmarks, which data are present, and where to get the rest."""
    extra = ",extra" if settings.benchmarks == "all" else ""
    rows = []
    for benchmark in find_benchmarks(settings.benchmarks + extra):
        read = (
            read_benchmark(benchmark.name, settings.data)
            if locate(benchmark, settings.data)
            else None
        )
        rows.append(
            {
                "benchmark": benchmark.name,
                "area": benchmark.area,
                "data": read.identity
                if read
                else f"missing: {benchmark.files[0]}, from {benchmark.source}",
                "problems": len(read.problems) if read else 0,
                "prompt": benchmark.prompt,
                "licence": benchmark.licence,
            }
        )
    print(pd.DataFrame(rows).to_markdown(index=False))
    for name, template in TEMPLATES.items():
        print(f"prompt {name}: {template.source}")
