"""A run's late tasks as a game: a person answers, then sees the members' attempts step by step."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from azr_population.config.load import config_from_file
from azr_population.config.schema import Config
from azr_population.console.output import plain_output
from azr_population.console.show import STYLES, body
from azr_population.domains.prompt_segments import marks_of, user_turn
from azr_population.domains.task import Task, task_from_dict
from azr_population.errors import UserError
from azr_population.files import refuse_closed_input
from azr_population.printable import printable
from azr_population.reading.run_data import RunData
from azr_population.referee import Program, Referee, RefereeSettings

_ASSIGNMENT = re.compile(r"    (\w+) = .+")
_TRACE = re.compile(r"(\w+) ?= ?(.+)")


class Exercise(NamedTuple):
    """A task with its stored attempts."""

    task: Task
    step: int
    teacher: str
    student: str
    solved: list[bool]
    """Whether each attempt of the step was right, stored or not."""
    attempts: list[Mapping[str, Any]]
    """Records of `completions.jsonl`: at least one."""


def play(path: Path, count: int) -> None:
    """Asks for the answers to up to `count` tasks of a run on standard input; its end ends the
    game. Tasks that some attempts solved and others did not come first, the latest of them first.

    Raises UserError: the run stored no attempt.
    """
    run = RunData(path)
    run.directory.refuse_results_only()
    refuse_closed_input("answers")
    exercises = _exercises(run)
    if not exercises:
        raise UserError(
            f"{path} has no stored attempts; to store those of more steps: azr-population resume "
            f"{path} run.log_completions=16 run.steps=N"
        )
    chosen = exercises[:count]
    # Inside AZR its executor judged, whose limits are AZR's.
    config = Config() if run.inside_azr else config_from_file(run.directory.config_file)
    settings = config.referee.model_dump()
    console = plain_output()
    yours, theirs = list[bool](), list[bool]()
    with Referee(RefereeSettings(**{**settings, "workers": 1})) as referee:
        for number, exercise in enumerate(chosen, 1):
            console.print(Text(f"task {number} of {len(chosen)}", "bold"))
            _ask(console, run, exercise)
            try:
                answer = input("your answer (Enter skips, q ends): ").strip()
            except EOFError:
                console.print()
                break
            if answer == "q":
                break
            if not sys.stdin.isatty():
                console.print(printable(answer))
            if answer:
                ((verdict,),) = run.domain.grade([(exercise.task, [answer])], referee)
                yours.append(verdict.solved)
                theirs += exercise.solved
                console.print(_marked("you", answer, verdict.solved))
            _show_attempts(console, exercise, _values(exercise.task, referee))
            console.print(f"right: {printable(run.domain.answer(exercise.task))}\n")
    if yours:
        console.print(
            f"you solved {sum(yours)} of {len(yours)}; the students {sum(theirs)} of {len(theirs)} "
            "attempts at the same tasks"
        )


def _exercises(run: RunData) -> list[Exercise]:
    """The tasks with stored attempts in the order of the game."""
    by_teacher: dict[tuple[int, str], list[Exercise]] = {}
    for record in run.tasks:
        try:
            task = task_from_dict(record)
        except ValidationError:
            continue
        teacher, student = record.get("teacher"), record.get("student")
        solved = [right is True for right in record.get("solved") or ()]
        exercise = Exercise(task, record["step"], str(teacher), str(student), solved, [])
        by_teacher.setdefault((exercise.step, exercise.teacher), []).append(exercise)
    for row in run.read("completions"):
        if row.get("phase") != "solve":
            continue
        # A record does not name its task. Where several fit, such as one with the input 1 and one
        # with 12, it is the longest, and of copies that of the student who attempted it.
        fitting = [
            ((len("".join(texts)), exercise.student == row.get("member")), exercise)
            for exercise in by_teacher.get((row["step"], str(row.get("opponent"))), ())
            if _holds(row.get("prompt") or "", texts := run.domain.shown(exercise.task))
        ]
        if fitting:
            max(fitting, key=lambda fit: fit[0])[1].attempts.append(row)
    exercises = [e for of_match in by_teacher.values() for e in of_match if e.attempts]
    return sorted(exercises, key=lambda e: (0 < sum(e.solved) < len(e.solved), e.step))[::-1]


def _holds(prompt: str, texts: Sequence[str]) -> bool:
    """Whether the texts stand in the prompt, each beside the others and as whole words."""
    for text in texts:
        if not (found := re.search(rf"(?<!\w){re.escape(text)}(?!\w)", prompt)):
            return False
        prompt = f"{prompt[: found.start()]}\n{prompt[found.end() :]}"
    return True


def _ask(console: Console, run: RunData, exercise: Exercise) -> None:
    """Prints the task as the student saw it."""
    task, prompt = exercise.task, printable(exercise.attempts[0]["prompt"])
    asks = run.domain.types.get(task.type, task.type)
    console.print(
        f"step {exercise.step}: {exercise.teacher} asks {exercise.student} to {asks}; the prompt:",
        style="dim",
    )
    console.print(*body(user_turn(prompt), marks_of(prompt, run.domain.marks)), sep="\n")


def _values(task: Task, referee: Referee) -> dict[str, str]:
    """The value of each variable of a program for the task's first input, as far as statements
    follow each other: of programs that stop there and return it. One that is assigned to twice has
    several and is left out."""
    lines = task.program.split("\n")
    assigned = {
        n: match[1] for n, line in enumerate(lines) if (match := _ASSIGNMENT.fullmatch(line))
    }
    times = Counter(assigned.values())
    assigned = {n: name for n, name in assigned.items() if times[name] == 1}
    programs = ["\n".join([*lines[: n + 1], f"    return {name}"]) for n, name in assigned.items()]
    runs = referee.check([Program(text, task.inputs[:1], task.imports) for text in programs])
    return {
        name: run.outputs[0] for name, run in zip(assigned.values(), runs, strict=True) if run.valid
    }


def _show_attempts(console: Console, exercise: Exercise, values: Mapping[str, str]) -> None:
    """The stored attempts, each line of a trace up to the first wrong one with whether it is right,
    and how many of the step's attempts were."""
    for row in exercise.attempts:
        right = row.get("verdict") == "solved"
        steps = printable(row.get("completion") or "(nothing)").strip().split("\n")
        name = printable(row.get("member") or "?")
        console.print(f"{name}, one of its {len(exercise.solved)} attempts:")
        # One that was cut off ends with a step; the answer `x = 5` is one, too.
        cut_off = _TRACE.fullmatch(steps[-1]) and not right
        last = "(no answer)" if cut_off else steps.pop()
        still_right = True  # what follows a wrong value may follow from it
        for line in steps:
            trace = _TRACE.fullmatch(line) if still_right else None
            value = values.get(trace[1]) if trace else None
            is_right = trace[2] == value if trace and value is not None else None
            wrong = f"   (is {value})" if is_right is False else ""
            still_right = still_right and not wrong
            console.print(_marked("", line + wrong, is_right))
        console.print(_marked("", last, right))
    student = printable(exercise.student)
    console.print(
        f"{student} solved it in {sum(exercise.solved)} of {len(exercise.solved)} attempts"
    )


def _marked(name: str, text: str, right: bool | None) -> Text:
    """A line with a check mark or a cross, if it is known whether it is right."""
    mark = {True: "✓", False: "✗", None: " "}[right]
    style = {True: STYLES["solved"], False: STYLES["refused"], None: ""}[right]
    return Text(f"{name:<6}") + Text(f"{mark} ", style) + Text(printable(text))
