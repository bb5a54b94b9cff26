"""A run's tasks and figures in the formats of others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from azr_population.printable import printable


def export(path: str, format: str, out: Path) -> None:
    """Writes the folder whole or not at all; `format` is one of `FORMATS`. Raises UserError: the
    folder is there already, the run holds nothing to export, or a package that the format needs is
    not installed."""
    from azr_population.errors import UserError
    from azr_population.files import replacing_folder
    from azr_population.runs import RunDirectory

    source = RunDirectory(path)
    _ = source.config_file
    if out.exists():
        raise UserError(f"--out {out} is there already; name a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(out) as folder:
        folder.mkdir()
        summary = FORMATS[format](source, folder, out.name)
    print(f"{out}: {summary}")


def _jsonl(run: Any, folder: Path, name: str) -> str:
    from azr_population.sharing.tasks import write_tasks

    rows = _tasks(run, folder, "tasks.jsonl")
    write_tasks(folder / "tasks.jsonl", rows)
    return f"{len(rows)} tasks"


def _parquet(run: Any, folder: Path, name: str) -> str:
    from azr_population.errors import UserError

    try:
        from pyarrow import Table, parquet
    except ImportError as error:
        raise UserError("--to parquet needs pyarrow; pip install pyarrow") from error
    rows, figures = _tasks(run, folder, "tasks.parquet"), _figures(run)
    parquet.write_table(Table.from_pylist(rows), folder / "tasks.parquet")
    parquet.write_table(Table.from_pylist(figures), folder / "metrics.parquet")
    return f"{len(rows)} tasks, {len(figures)} figures"


def _csv(run: Any, folder: Path, name: str) -> str:
    from azr_population.printable import csv_text

    figures = _figures(run)
    text = csv_text(list(figures[0]), [list(row.values()) for row in figures])
    (folder / "metrics.csv").write_text(text, encoding="utf-8")
    return f"{len(figures)} figures"


def _latex(run: Any, folder: Path, name: str) -> str:
    from azr_population.errors import UserError
    from azr_population.runs.records import metrics_of_roles

    steps = list(run.metrics())
    if not steps:
        raise UserError(f"{run.path} has no steps yet, so there is no table to write")
    roles = metrics_of_roles(steps[-1])
    names = [
        name
        for name in dict.fromkeys(name for figures in roles.values() for name in figures)
        if any(isinstance(figures.get(name), (int, float)) for figures in roles.values())
    ]
    lines = [
        rf"% step {_escaped(steps[-1].get('step'))} of {_escaped(run.path.name)}",
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(roles)}}}",
        r"\toprule",
        " & ".join(["", *map(_escaped, roles)]) + r" \\",
        r"\midrule",
        *(
            " & ".join([_escaped(name), *(_cell(figures.get(name)) for figures in roles.values())])
            + r" \\"
            for name in names
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    (folder / "metrics.tex").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{len(names)} rows"


def _verifiers(run: Any, folder: Path, name: str) -> str:
    from azr_population.sharing.verifiers_package import module_name, write_package

    module_name(name)  # before the work begins
    rows = _tasks(run, folder, None)
    module = write_package(folder, name, rows)
    return f"{len(rows)} tasks; pip install it, then: vf-eval {module}"


FORMATS: dict[str, Callable[[Any, Path, str], str]] = {
    "jsonl": _jsonl,
    "parquet": _parquet,
    "csv": _csv,
    "latex": _latex,
    "verifiers": _verifiers,
}
"""Each writes into an empty folder and says in a few words what it wrote."""


def _tasks(run: Any, folder: Path, file: str | None) -> list[dict[str, Any]]:
    """The tasks; beside them, where `file` is to hold them as a data set, its card."""
    from azr_population.sharing.tasks import data_set_card, distinct_tasks

    rows = distinct_tasks(run)
    if file:
        (folder / "README.md").write_text(data_set_card(run, rows, file), encoding="utf-8")
    return rows


def _figures(run: Any) -> list[dict[str, Any]]:
    """Every figure of every step, under the names that loggers use."""
    from azr_population.errors import UserError
    from azr_population.hosts.loggers import step_figures

    rows = [
        {"step": step["step"], "name": name, "value": value}
        for step in run.metrics()
        for name, value in step_figures(step).items()
    ]
    if not rows:
        raise UserError(f"{run.path} has no steps yet, so there are no figures to export")
    return rows


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def _escaped(text: object) -> str:
    """Text for LaTeX, on one line; names in a run's records may be anybody's."""
    return printable(text).replace("\n", " ").translate(_LATEX)


def _cell(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "--"
    return str(value) if isinstance(value, int) else f"{value:.3g}"
