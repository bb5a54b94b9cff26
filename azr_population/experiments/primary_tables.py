"""The primary hypotheses of a recipe as they were written, and what came out."""

from collections.abc import Mapping

from azr_population.experiments.hypotheses import HypothesisResult, answers
from azr_population.experiments.recipe import Recipe, TableRow
from azr_population.experiments.results_tables import Table, with_interval
from azr_population.runs.formatting import csv_text, plain_number

COLUMNS = (
    *("hypothesis", "measure", "arm", "than", "margin", "seeds"),
    *("difference", "low", "high", "confidence", "p", "p_permutation", "verdict"),
)


def primary_tables(recipe: Recipe, table: Table) -> tuple[str, str]:
    """(Markdown, CSV)."""
    values: Mapping[str, Mapping[str, Mapping[str, float]]] = {
        row.label: {arm: cell.values for arm, cell in of_row.items()}
        for row, of_row in table.items()
    }
    found = answers(recipe.primary, values, recipe.paired, recipe.together)
    lines = ["## What was to be shown, written before it was played", ""]
    lines += [_line(answer, recipe.rows) for answer in found]
    if len(found) > 1:
        lines += ["", _together(recipe)]
    if recipe.decision:
        lines += ["", f"Decision: {recipe.decision}"]
    return "\n".join(lines), csv_text(COLUMNS, map(_row, found))


def _line(answer: HypothesisResult, rows: tuple[TableRow, ...]) -> str:
    primary, result = answer.primary, answer.test
    what = f"`{primary.arm}`" + (f" minus `{primary.than}`" if primary.than else "")
    above = f" (above {primary.margin:g}?)" if primary.margin else ""
    line = f"- {primary.hypothesis} {primary.measure}, {what}{above}: "
    if result is None:
        return line + f"**{answer.verdict}**."
    told = (
        f"{with_interval(result.estimate)} ({1 - result.level:.1%} interval), "
        f"n={result.estimate.n}, p={answer.p:.2g}"
    )
    if result.permutation is not None:
        told += f", by permutation {result.permutation:.2g}"
    return f"{line}{told}: **{answer.verdict}**."


def _together(recipe: Recipe) -> str:
    if recipe.together:
        return "All of them have to hold at once, so that each is tested at its full level."
    return "p is corrected by Holm for their number, the intervals by Bonferroni."


def _row(answer: HypothesisResult) -> list[str]:
    primary, result = answer.primary, answer.test
    estimate = result.estimate if result else None
    bounds = (estimate.mean, estimate.low, estimate.high) if estimate else (None,) * 3
    return [
        *(primary.hypothesis, primary.measure, primary.arm, primary.than, f"{primary.margin:g}"),
        str(estimate.n if estimate else 0),
        *map(plain_number, (*bounds, 1 - result.level if result else None)),
        plain_number(answer.p),
        plain_number(result.permutation if result else None),
        answer.verdict,
    ]
