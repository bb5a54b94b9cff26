"""Which completions are kept, and what their lines say."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import Bytes

from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.engines.engine import Completion
from azr_population.method import completion_log
from azr_population.method.completion_log import CompletionLog, choose_balanced
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.proposals import Attempt, Proposal
from azr_population.streams import Streams

PROGRAM = ParsedProposal(TaskType.CODE_O, "def f(a):\n    return a + 1", ("1",))
TASK = Task(**vars(PROGRAM), outputs=("2",))


def wrote(slot, text, logprobs=(-0.5, -1.5)):
    return Completion(slot, (72, 105), tuple(text.encode()), logprobs, True, text)


@pytest.fixture
def roster():
    return Roster.make(1, 1)


@pytest.fixture
def rows(roster):
    match = Match(*roster)
    valid = Proposal(match, TaskType.CODE_O, wrote(0, "good"), PROGRAM, TASK, "ok", reward=0.5)
    valid.attempts = [
        Attempt(wrote(1, "2"), "2", True, "solved", 1.0, 0.7),
        Attempt(wrote(1, "3"), "3", False, "wrong", -0.5),
    ]
    return [valid, Proposal(match, TaskType.CODE_O, wrote(0, "bad"), None, reward=-1.0)]


def kept(roster, rows, per_step=9, step=2, replayed=()):
    population = SimpleNamespace(roster=roster, step=step, streams=Streams(1))
    log, records = CompletionLog(per_step, Bytes()), SimpleNamespace(completions=[])
    log.updated(population, rows, replayed)
    log.recorded(population, rows, records)
    return records.completions


def test_a_line_says_who_wrote_what_and_what_came_of_it(roster, rows):
    first, solved, failed, refused = kept(roster, [rows[0]]) + kept(roster, [rows[1]])
    assert first == {
        **{"step": 2, "phase": "propose", "member": "teacher_0", "generation": 0},
        **{"opponent": "student_0", "type": "code_o", "verdict": "valid", "reason": "ok"},
        **{"solve_rate": 0.5, "reward": 0.5, "advantage": None},
        **{"log_prob": -1.0, "tokens": 4, "finished": True},
        **{"prompt": "Hi|", "completion": "good"},
    }
    assert (solved["verdict"], solved["reason"], solved["member"]) == (
        *("solved", "solved"),
        "student_0",
    )
    assert (solved["opponent"], solved["advantage"], solved["reward"]) == ("teacher_0", 0.7, 1.0)
    assert (failed["verdict"], failed["reason"], failed["advantage"]) == ("failed", "wrong", None)
    assert (refused["verdict"], refused["reason"]) == ("refused", "unparsable")


def test_replay_is_kept_too_and_decoded_late(roster):
    output = Completion(1, (72,), tuple(b"so 2"), (), False)
    attempt = Attempt(output, None, reward=-1.0, type="code_o")
    (line,) = kept(roster, [], replayed=[attempt])
    assert (line["completion"], line["prompt"], line["log_prob"]) == ("so 2", "H|", None)
    assert (line["opponent"], line["finished"], line["verdict"]) == (None, False, "failed")


def test_no_more_than_wanted_but_of_the_first_step_all(roster, rows, monkeypatch):
    many = rows * 10
    assert len(kept(roster, many, per_step=7)) == 7
    assert len(kept(roster, many, per_step=7, step=1)) == 40
    monkeypatch.setattr(completion_log, "FIRST", 12)
    assert len(kept(roster, many, per_step=7, step=1)) == 12
    assert kept(roster, many, per_step=0, step=1) == []


def records(counts):
    """Lines with so many of each (verdict, member, type, reason)."""
    names = ("verdict", "member", "type", "reason")
    return [dict(zip(names, kind, strict=True)) for kind, n in counts.items() for _ in range(n)]


def test_rare_verdicts_and_all_members_are_seen():
    lines = records(
        {
            ("refused", "teacher_0", "code_o", "boolean"): 300,
            ("refused", "teacher_1", "code_o", "boolean"): 300,
            ("refused", "teacher_1", "code_i", "timeout"): 1,
            ("valid", "teacher_0", "code_o", "ok"): 2,
            ("failed", "student_0", "code_o", "wrong"): 50,
            ("solved", "student_0", "code_o", "solved"): 1,
        }
    )
    chosen = [lines[i] for i in choose_balanced(lines, 12, np.random.default_rng(3))]
    verdicts = Counter(line["verdict"] for line in chosen)
    assert (verdicts["valid"], verdicts["solved"]) == (2, 1)  # all that there are
    assert min(verdicts["refused"], verdicts["failed"]) >= 4
    assert "timeout" in {line["reason"] for line in chosen}
    assert {line["member"] for line in chosen} == {"teacher_0", "teacher_1", "student_0"}


def test_the_choice_is_the_seeds_and_keeps_the_order():
    lines = records({("refused", "teacher_0", "code_o", "boolean"): 50})
    draws = [choose_balanced(lines, 5, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert all(draw == sorted(set(draw)) for draw in draws)


def test_what_is_too_long_loses_its_middle(roster, rows):
    text = "a" * 9000 + "b" * 9000
    rows[1].completion = wrote(0, text)
    (line,) = kept(roster, rows[1:])
    assert line["cut"] == 2000 and "[... 2,000 characters ...]" in line["completion"]
    assert line["completion"].startswith("aaa") and line["completion"].endswith("bbb")
    assert line["tokens"] == 18_000
