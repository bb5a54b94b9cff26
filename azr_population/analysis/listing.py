"""The runs in a folder, a line each."""

from collections.abc import Iterator
from pathlib import Path

from azr_population.runs import RunDirectory
from azr_population.runs.records import config_of, last_step, number

_DEPTHS = ("*", "*/*", "*/*/*", "*/*/*/*")
"""`runs/recipes/nano/4t4s/seed_1` is the deepest place where our own commands put a run."""


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs in `folder`, which is none itself, sorted by path; at most four deep."""
    configs = (path for depth in _DEPTHS for path in folder.glob(f"{depth}/config.yaml"))
    return sorted(path.parent for path in configs)


def run_lines(paths: list[Path]) -> Iterator[str]:
    """Each run's path, population, seed, steps, and whether its page is there."""
    width = max(len(str(path)) for path in paths)
    for path in paths:
        run = RunDirectory(path)
        steps = number(config_of(run, "run", "steps"))
        parts = [
            str(config_of(run, "population", "name") or "?"),
            f"seed {config_of(run, 'seed')}",
            f"{last_step(run)} of {'?' if steps is None else int(steps)} steps",
            *(["report.html"] if (path / "report.html").is_file() else []),
        ]
        yield f"{path!s:<{width}}  {', '.join(parts)}"
