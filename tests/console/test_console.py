import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azr_population.analysis.html import format_number
from azr_population.console.live import LiveView, console_view
from azr_population.console.output import StandardOutput, say
from azr_population.console.view import LinesView, View, match_line, origin
from azr_population.printable import duration, print_lines
from azr_population.runs.records import finite_or_none, show

START = {"name": "4t4s", "steps": 12, "step": 0, "dir": "runs/[red]demo"}
END = {"status": "finished", "dir": "runs/demo", "report": "runs/demo/report.html"}


def play(view, run):
    view.on_start({**START, "members": [{"name": "student_0", "role": "student", "mu": 25.0}]})
    for step in run["metrics"]:
        for match in run["matches"]:
            if match["step"] == step["step"]:
                view.on_match(match)
        for child in run["lineage"]:
            if child["step"] == step["step"]:
                view.on_replacement(child)
        view.on_step(step)
    view.on_end(END)


def console(width=100, terminal=False):
    return Console(file=io.StringIO(), width=width, height=40, force_terminal=terminal)


def written(console):
    return console.file.getvalue()


def test_a_match_in_one_line():
    match = {
        "teacher": "teacher_1",
        "student": "student_3",
        "proposed": 48,
        "valid": 37,
        "solve_rate": 0.412,
        "teacher_mu": [25.0, 24.58],
        "student_mu": [25.0, 25.42],
    }
    for part in ("teacher_1", "student_3", "37", "48", "41%", "-0.4, +0.4"):
        assert part in match_line(match)
    alone = {"teacher": "agent_0", "student": "agent_0", "proposed": 24, "valid": 0}
    assert match_line(alone).count("agent_0") == 2 and "%" not in match_line(alone)


@pytest.mark.parametrize("value", [None, "1", True, float("inf"), float("nan"), [1]])
def test_what_is_no_number_shows_as_missing(value):
    assert finite_or_none(value) is None
    assert show(value, "{:.1f}") == "-"


def test_time_left_follows_the_last_steps():
    view = View()
    view.on_start({"steps": 20})
    assert view.left == ""
    for step in range(1, 13):
        view.on_step({"step": step, "time/step": 100.0 if step < 3 else 15.0})
    assert view.left == f"{duration(15.0 * 8)} left"


def test_lines_tell_everything_once_and_unwrapped(made_up_run):
    out = console(width=20)
    play(LinesView(out), made_up_run())
    lines = written(out).splitlines()
    assert lines[0].startswith("4t4s: ") and lines[0].endswith("runs/[red]demo")
    assert sum(line.startswith("  teacher_") for line in lines) == 48
    assert sum("replaced by" in line for line in lines) == 2
    assert sum(line.startswith("step ") for line in lines) == 12
    (fourth,) = [line for line in lines if line.startswith("step 4/12")]
    assert "4.2 s, 0:34 left" in fourth
    for figure_shown in ("80%", "97%", "24%", "85%"):
        assert figure_shown in fourth
    assert lines[-1].endswith("runs/demo/report.html")
    assert any(line.startswith("student_1 ") and "svd_subspace" in line for line in lines)


def test_a_view_shows_the_ratings_of_its_last_step():
    for make in (LinesView, LiveView):
        out = console(80, terminal=make is LiveView)
        view = make(out)
        view.on_start({"student_0/mu": 25.0, "student_1/mu": 25.0})
        step = {"student_0/mu": 30.0, "student_0/sigma": 1.0}
        view.on_step({"step": 1, **step, "student_1/mu": 31.0, "student_1/sigma": 4.0})
        view.on_end({})
        rated = [text for text in written(out).splitlines() if "student_" in text][-2:]
        assert "30.0" in rated[0] and "31.0" in rated[1], (make, rated)  # by mu - 3 sigma


@pytest.mark.parametrize(("width", "sizes"), [(80, (4, 4)), (120, (8, 8)), (50, (0, 0))])
def test_the_live_view_ends_on_the_last_state(width, sizes, made_up_run):
    out = console(width, terminal=True)
    play(LiveView(out), made_up_run(teachers=sizes[0], students=sizes[1]))
    text = written(out)
    assert "step 12/12" in text
    assert "runs/[red]demo" in text
    assert text.endswith("runs/demo/report.html\n")
    # The cursor comes back.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_a_beat_within_a_write_draws_nothing(made_up_run, monkeypatch):
    def screen(beats):
        out = console(80, terminal=True)
        view, write = LiveView(out), out.file.write

        def interrupted(text):
            if beats:
                view._on_beat()
            return write(text)

        monkeypatch.setattr(out.file, "write", interrupted)
        monkeypatch.setattr("azr_population.console.live.time.monotonic", lambda: 0.0)
        play(view, made_up_run())
        return written(out).count("step 12/12")

    assert screen(beats=True) == screen(beats=False)


def test_the_live_view_fits_a_usual_terminal(made_up_run):
    out = console(80, terminal=True)
    view = LiveView(out)
    play(view, made_up_run(teachers=8, students=8))
    lines = out.render_lines(view._live.renderable, out.options)
    text = ["".join(segment.text for segment in line) for line in lines]
    assert len(text) <= 16
    assert any("teacher" in line and "80%" in line and "97%" in line for line in text)
    assert any("teacher_" in line and "student_" in line and "svd_su" in line for line in text)


@pytest.mark.parametrize("make", [LinesView, LiveView])
def test_records_with_nothing_in_them_pass(make):
    view = make(console(80))
    view.on_start({})
    view.on_match({"teacher": "a", "student": "b"})
    view.on_step({"step": 1})
    view.on_step({"step": 2, "teacher/reward": None, "teacher_0/mu": None, "eval/greedy": None})
    view.on_end({})


def test_who_was_born_at_the_last_step_is_marked(made_up_run):
    births = {"student_1": {"step": 10, "operator": "dare"}}
    assert [origin(births, "student_1", step) for step in (10, 11)] == ["new: dare", "dare"]
    assert origin(births, "student_0", 10) == "start"
    out = console()
    play(LinesView(out), made_up_run(steps=10))
    rated = [line for line in written(out).splitlines() if " mu - 3 sigma " in line]
    assert [line.split()[0] for line in rated if line.endswith("new: svd_subspace")] == [
        "student_2"
    ]


def test_the_view_suits_where_it_is_shown(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(console_view("auto", console(terminal=True)), LiveView)
    assert isinstance(console_view("auto", console()), LinesView)
    monkeypatch.setenv("CI", "1")
    assert isinstance(console_view("auto", console(terminal=True)), LinesView)
    assert isinstance(console_view("live", console()), LiveView)
    assert isinstance(console_view("lines", console(terminal=True)), LinesView)


def test_lines_among_those_of_another_program_say_whose_they_are(made_up_run):
    out = console()
    play(LinesView(out, prefix="population: "), made_up_run())
    assert all(line.startswith("population: ") for line in written(out).splitlines())


def test_figures_have_few_digits():
    percents = {0.206: "21%", 0.416: "42%", 0.052: "5.2%", -0.126: "-13%", 1.0: "100%"}
    assert {value: format_number(value, True) for value in percents} == percents
    numbers = {27.26: "27.3", 7.126: "7.13", 0.5: "0.500", 373.5: "374", 12345.6: "12,346"}
    assert {value: format_number(value, False) for value in numbers} == numbers


def test_control_characters_of_names_reach_no_terminal(capsys):
    hostile = "runs/\x1b[2Jmine\x9b\u202e"
    output = io.StringIO()
    console = StandardOutput(file=output, force_terminal=True, width=80)
    table = Table(hostile)
    table.add_row(Text(hostile, "bold"))
    for shown in (hostile, Text(hostile), table):
        console.print(shown)
    LinesView(console).on_note(hostile)
    print_lines(Path(hostile))
    say(hostile)
    printed = capsys.readouterr()
    for text in (output.getvalue(), printed.out, printed.err):
        assert "\\x1b[2J" in text and "\x1b[2J" not in text and "\x9b" not in text
        assert "\\u202e" in text


def test_a_write_that_a_signal_cuts_short_loses_nothing():
    """A heartbeat comes while the terminal takes no more; Python's output is not buffered."""
    beats, beat = os.pipe()
    command = [sys.executable, "-u", "-c", INTERRUPTED, str(beat)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[beat]) as process:
        os.close(beat)
        assert os.read(beats, 1) == b"b"
        assert process.stdout.read() == b"x" * 300_000 + b"\n"
    os.close(beats)


INTERRUPTED = """\
import os, signal, sys
from azr_population.console.output import plain_output
signal.signal(signal.SIGALRM, lambda *_: os.write(int(sys.argv[1]), b"b"))
output = plain_output()
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
output.print("x" * 300_000)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
"""Writes more than a pipe takes; says when its handler of the timer has run."""
