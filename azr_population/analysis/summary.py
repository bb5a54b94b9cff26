"""The summary of a run: whether students got better, which member is best and where it is, what
evolution did, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from azr_population.analysis.changes import SHORT, Change, nothing_valid
from azr_population.analysis.html import format_number
from azr_population.analysis.sentences import change_sentence
from azr_population.analysis.statistics import LEVEL, Estimate, compare, tenth, with_holm
from azr_population.reading.run_data import RunData
from azr_population.runs.records import (
    best_of,
    conservative,
    finite_or_none,
    member_scores,
    metrics_of_members,
)

BETTER, GREW = "Students got better", "Programs grew"


class Summary(NamedTuple):
    """Sentences; empty where there is nothing to say."""

    wrong: str
    """Why there is no valid proposal; the other sentences are then empty."""
    students: str
    programs: str
    """Whether they grew, and whether students keep up."""
    held_out: str
    """A sentence on each group of held-out tasks, at the first and at the last eval."""
    best: str
    evolution: str
    next: list[str]
    """Commands to go on with."""

    @property
    def sentences(self) -> list[str]:
        """For the page and the terminal: what got better comes first."""
        lead = sorted(
            [self.students, self.programs], key=lambda s: not s.startswith((BETTER, GREW))
        )
        return [*filter(None, [*lead, self.held_out, self.best, self.evolution])]

    @property
    def lines(self) -> list[str]:
        """For the end of the terminal's output."""
        return [*self.sentences, *(f"next: {command}" for command in self.next)]


def summary(run: RunData, changes: Mapping[str, Change]) -> Summary:
    """The summary of a run as far as it is recorded; `changes` are `measured_changes`."""
    if wrong := nothing_valid(run.table):
        return Summary(wrong, "", "", "", "", "", [])
    students, programs, held_out = _students(changes, run.last), _programs(changes), _held_out(run)
    return Summary(
        "", students, programs, held_out, _best(run), evolution_sentence(run), _next(run)
    )


def _students(changes: Mapping[str, Change], last: int) -> str:
    """Whether students got better at held-out tasks; a solve rate rises when tasks get easier."""
    few = f" {last} steps are few; only other seeds show whether it is repeated." * (last <= SHORT)
    if last < 2:
        return "One step is recorded: nothing can have changed yet." if last else ""
    change = changes.get("eval/greedy")
    if change is None:
        change = changes.get("solve_rate")
        if change is None:
            return ""
        width = tenth(last)
        steps = f"first and last {width} steps" if width > 1 else "first and last step"
        return (
            f"Whether students got better is not measured (fewer than two evals); of their own "
            f"tasks they solve {_shares(change)} ({steps}).{few}"
        )
    lead = {
        1: f"{BETTER} at held-out tasks",
        -1: "Students got worse at held-out tasks",
        0: "No change of students at held-out tasks is shown",
    }[change.difference.sign() or 0]
    return f"{change_sentence(lead, _shares(change), change.difference, True, 'tasks')}.{few}"


def _shares(change: Change) -> str:
    """`30% to 60%`."""
    return f"{format_number(change.first, True)} to {format_number(change.last, True)}"


def _programs(changes: Mapping[str, Change]) -> str:
    """Whether programs grew, by their lines, which domains of programs measure."""
    lines, solved = changes.get("lines"), changes.get("solve_rate")
    if lines is None or solved is None:
        return ""
    lead = {1: GREW, -1: "Programs shrank", 0: "That programs grew is not shown"}
    ends = f"{lines.first:.1f} to {lines.last:.1f} lines"
    start = lead[lines.difference.sign() or 0]
    grown = change_sentence(start, ends, lines.difference, False, "steps")
    return f"{grown}; {_shares(solved)} of the attempts solve them."


def _held_out(run: RunData) -> str:
    """Groups that are always or never solved are only counted."""
    evals = [line for line in run.lines if "eval/greedy" in line]
    if len(evals) < 2:
        return ""
    texts, same = list[str](), Counter[str]()
    for key in evals[0]:
        if key.count("/") == 3 and key.startswith("eval/greedy/") and key in evals[-1]:
            first, last = (finite_or_none(line[key]) for line in (evals[0], evals[-1]))
            if first is None or last is None:
                continue
            if min(first, last) > 0.99 or max(first, last) < 0.01:
                same[f"{first:.0%}"] += 1
            else:
                name = key.rpartition("/")[2].replace("_", " ").lstrip("0")
                texts.append(f"{name} {first:.0%} to {last:.0%}")
    if not texts:
        return ""
    texts += [f"{count} others {share} throughout" for share, count in same.items()]
    return f"Held-out tasks: {', '.join(texts)}."


def _best(run: RunData) -> str:
    """The best student at any eval, which `members/best` keeps, or the highest rated one."""
    members, validations = run.directory.members, list(run.read("validations"))
    if best := best_of(member_scores(run.lines, validations)):
        path = members / "best" if (members / "best").is_dir() else members / best.name
        tasks = "AZR's validation tasks" if validations else "held-out tasks"
        where = f"{best.name} at step {best.step}, {best.score:.1%} of {tasks}"
        return f"Best member: {where}, in {path}."
    ratings = {
        name: rated
        for name, member in metrics_of_members(run.lines[-1] if run.lines else {}).items()
        if name.startswith("student") and (rated := conservative(member)) is not None
    }
    if not ratings:
        return ""
    name = max(ratings, key=lambda each: ratings[each])
    return f"Highest rated student (no eval): {name}, in {members / name}."


def evolution_sentence(run: RunData) -> str:
    """The number of children, and how those of students compare with their first parent at
    the first eval that both were in."""
    births = run.births
    if not births:
        return "Evolution: nobody was replaced." if len(run.roles) > 2 else ""
    scores: dict[tuple[Any, Any], dict[int, Sequence[float | None]]] = {}
    for row in run.evals:
        greedy = scores.setdefault((row.get("member"), row.get("generation")), {})
        greedy[row["step"]] = row["greedy"]
    generations: dict[str, int] = {}
    tests: list[Estimate] = []
    for birth in births:
        child, parent = birth.child, next(iter(birth.parents), "")
        before = generations.get(parent, 0)
        generations[child] = birth.generation
        child_scores = scores.get((child, generations[child]), {})
        parent_scores = scores.get((parent, before), {})
        shared = sorted(
            step for step in child_scores.keys() & parent_scores.keys() if step > birth.step
        )
        if not shared or len(child_scores[shared[0]]) != len(parent_scores[shared[0]]):
            continue
        pairs = zip(child_scores[shared[0]], parent_scores[shared[0]], strict=True)
        judged = [(a, b) for a, b in pairs if a is not None and b is not None]
        tests.append(compare([a for a, _ in judged], [b for _, b in judged], paired=True))
    count = f"{len(births)} {'child' if len(births) == 1 else 'children'}"
    if not tests:
        return f"Evolution: {count}; none was tested against its parent."
    # One in twenty would be better or worse by chance, and a run has tens of children.
    corrected = with_holm(dict(enumerate(tests))).values()
    differing = [test.mean > 0 for test in corrected if test.p < LEVEL]
    better, worse = differing.count(True), differing.count(False)
    return (
        f"Evolution: {count}, {len(tests)} tested against the parent: {better or 'none'} better, "
        f"{worse or 'none'} worse, {len(tests) - len(differing) or 'none'} not shown to differ "
        "(95% over tasks, corrected for the number of tests)."
    )


def _next(run: RunData) -> list[str]:
    path = shlex.quote(str(run.path))
    steps = run.steps or run.last
    longer = 2 * steps if run.last >= steps else steps
    if run.inside_azr:
        total = f" trainer.total_training_steps={longer}" * (longer != steps)
        resume = f"azr-population azr <your overrides> trainer.resume_mode=auto{total}"
    else:
        resume = f"azr-population resume {path}" + f" run.steps={longer}" * (longer != steps)
    play = f"azr-population play {path}"
    if run.last < steps:
        return [resume, play]
    beside = (file.parent for file in sorted(run.path.parent.glob("[!.]*/config.yaml")))
    runs = [each for each in beside if each != run.path and (each / "metrics.jsonl").is_file()]
    others = [shlex.quote(str(each)) for each in runs]
    return [play, resume, *(f"azr-population compare {path} {other}" for other in others[:1])]
