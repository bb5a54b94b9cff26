"""What `push` says of a member's benchmarks: `.eval_results/*.yaml`, as the Hub reads them."""

from pathlib import Path
from typing import Any

import yaml

from azr_population.evals.benchmarks import BENCHMARKS
from azr_population.files import read_json
from azr_population.runs import RunDirectory

FIGURES = "evaluation/figures.json"
"""In a run's folder: figures of its last benchmarks."""


def write_eval_results(run: RunDirectory, member: str, folder: Path) -> None:
    """Writes one file for each whole benchmark that the member was asked and that has a data set on
    the Hub (pass@1 in percent); nothing where there are no figures."""
    file = run.path / FIGURES
    figures = read_json(file) if file.is_file() else {}
    lines = [one for one in figures.get("lines", ()) if (one["model"], one["k"]) == (member, 1)]
    for about in figures.get("benchmarks", ()) if lines else ():
        benchmark = BENCHMARKS.get(about["name"])
        # A part of a benchmark is not its score.
        if benchmark is None or not benchmark.hub or about["limit"]:
            continue
        cell = lines[0]["cells"][about["title"]]
        entry: dict[str, Any] = {
            "dataset": {"id": benchmark.hub, "task_id": benchmark.hub.rpartition("/")[2]},
            "value": round(100 * cell["value"], 2),
            "notes": f"prompt {about['prompt']}, temperature {figures['temperature']:g}, "
            f"at most {about['max_tokens']} tokens, data {about['data']}",
        }
        place = folder / ".eval_results" / f"{benchmark.name}.yaml"
        place.parent.mkdir(exist_ok=True)
        place.write_text(yaml.safe_dump([entry], sort_keys=False), encoding="utf-8")
