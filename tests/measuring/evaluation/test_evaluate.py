"""The whole way with a sampler that has its answers ready, so that every figure is known."""

from __future__ import annotations

import json
from dataclasses import replace

import needs
import pytest
from made_up_problems import write_jsonl

from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import chosen
from azr_population.measuring.evaluation.contestants import Contestant, Contestants
from azr_population.measuring.evaluation.data import read
from azr_population.measuring.evaluation.evaluate import Plan, evaluate
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.progress import View
from azr_population.measuring.evaluation.prompts import wordings
from azr_population.measuring.evaluation.sampling.sampler import Drawn
from azr_population.measuring.evaluation.store import Store
from azr_population.measuring.evaluation.table import as_csv, as_json, markdown

needs.module("math_verify", "-e '.[eval]'")
needs.module("pebble", "-e '.[eval]'")


class Ready:
    """Answers question i rightly when `knows(contestant, i)`; counts what it was asked."""

    name = "ready"

    def __init__(self, knows, dies_after=None):
        self.knows = knows
        self.asked = 0
        self.seeds = []
        self.dies_after = dies_after

    def open(self, entry, contestants):
        yield self, list(contestants)

    def sample(self, requests, settings, seed):
        self.seeds.append(seed)
        for place, request in enumerate(requests):
            if self.dies_after is not None and self.asked >= self.dies_after:
                raise UserError("the server died")
            number = int(request.prompt.text.split("is ")[1].split("+")[0])
            drawn = []
            for sample in range(request.n):
                right = self.knows(request.contestant.name, number, sample)
                text = rf"so \boxed{{{2 * number if right else 'no idea'}}}" if right else "hm"
                drawn.append(Drawn(text, 3, right))
                self.asked += 1
            yield place, drawn


@pytest.fixture
def data(tmp_path):
    rows = [{"question": f"What is {n}+{n}?", "answer": f"#### {2 * n}"} for n in range(10)]
    write_jsonl(tmp_path / "data/gsm8k.jsonl", rows)
    return read(chosen("gsm8k")[0], tmp_path / "data")


@pytest.fixture
def plan(data):
    return Plan((data,), wordings("", [data.benchmark]), rows=6)


@pytest.fixture
def entry(tmp_path):
    folder = tmp_path / "run/members/student_0"
    members = [Contestant(f"student_{n}", "student", f"w{n}", folder) for n in range(2)]
    return Contestants(
        "run", tmp_path / "run/evaluation", None, (Contestant("base", "base", "b"), *members)
    )


@pytest.fixture(scope="module")
def graders():
    with Graders(1) as made:
        yield made


def knows(name, number, sample):
    return number < {"base": 2, "student_0": 5, "student_1": 7}[name]


def run(entry, plan, sampler, graders):
    return evaluate(entry, plan, sampler.open, sampler.name, graders, View())


def test_runs_of_one_base_ask_it_once(entry, plan, graders, tmp_path):
    sampler = Ready(knows)
    first = run(entry, plan, sampler, graders)
    assert sampler.asked == 30
    base, _, student = entry.contestants
    they = (base, replace(student, weights="w7"))
    second = replace(entry, label="other", records=tmp_path / "other", contestants=they)
    result = evaluate(second, plan, sampler.open, "ready", graders, View(), [first.store])
    assert sampler.asked == 40
    assert result.right["gsm8k"]["base"] == first.right["gsm8k"]["base"]
    kept = Store(second.records)
    assert len(kept.completions) == len(kept.verdicts) == 20, "each run has all of its own records"


def test_figures_of_known_answers(entry, plan, graders):
    result = run(entry, plan, Ready(knows), graders)
    lines = [line.split(",") for line in as_csv([result]).splitlines()]
    found = {(line[1], line[4]): float(line[5]) for line in lines[1:]}
    figures = {
        "base": 0.2,
        "student_0": 0.5,
        "student_1": 0.7,
        "mean": 0.6,
        "best member": 0.7,
        "weakest member": 0.5,
    }
    titles = ("GSM8K", "mathematics by AZR's rule")
    assert found == {(who, title): value for who, value in figures.items() for title in titles}
    text = markdown([result])
    assert "| student_1 | 70.0 [" in text
    assert "| run: members - base | +40.0 [" in text
    assert "GSM8K: 16 of 30 have no answer in the right form, as: hm" in text
    assert "the file is not a known release" in text
    kept = json.loads(as_json(result))
    assert kept["right"]["gsm8k"]["base"] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_verdict_of_a_rule_before_this_one_is_given_again(entry, plan, graders):
    result = run(entry, plan, Ready(knows), graders)
    file = entry.records / "verdicts.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    old = [{k: v for k, v in {**row, "passed": True}.items() if k != "azr_passed"} for row in rows]
    write_jsonl(file, old)
    again = Ready(knows)
    assert markdown([run(entry, plan, again, graders)]) == markdown([result])
    assert again.asked == 0


def test_the_same_command_asks_nothing_twice(entry, plan, graders):
    first = Ready(knows)
    result = run(entry, plan, first, graders)
    again = Ready(lambda *a: False)
    assert markdown([run(entry, plan, again, graders)]) == markdown([result])
    assert (first.asked, again.asked) == (30, 0)


def test_what_was_finished_when_the_server_died_is_kept(entry, plan, graders):
    dying = Ready(knows, dies_after=13)
    with pytest.raises(UserError, match="the server died"):
        run(entry, plan, dying, graders)
    assert len(Store(entry.records).completions) == 13
    rest = Ready(knows)
    result = run(entry, plan, rest, graders)
    assert rest.asked == 30 - 13
    assert result.right["gsm8k"]["student_1"] == [[n < 7] for n in range(10)]


def test_more_problems_and_samples_ask_for_the_rest_only(entry, plan, graders):
    run(entry, replace(plan, limit=4), Ready(knows), graders)
    more = Ready(knows)
    run(entry, plan, more, graders)
    assert more.asked == 30 - 12
    drawn = replace(plan, temperature=0.8, samples=2)
    run(entry, drawn, Ready(knows), graders)
    several = Ready(lambda name, number, sample: sample == 3)
    result = run(entry, replace(drawn, samples=4), several, graders)
    assert several.asked == 30 * 2  # two of four are there already
    assert len(set(several.seeds)) == len(several.seeds)
    assert all(len(s) == 4 for s in result.right["gsm8k"]["base"])


def test_other_weights_prompts_and_limits_are_other_completions(entry, plan, graders):
    run(entry, plan, Ready(knows), graders)
    other = replace(entry, contestants=(replace(entry.contestants[0], weights="new"),))
    for changed_entry, changed in (
        (other, plan),
        (entry, replace(plan, max_new_tokens=7)),
        (entry, replace(plan, wordings=wordings("cot", [d.benchmark for d in plan.data]))),
    ):
        sampler = Ready(knows)
        run(changed_entry, changed, sampler, graders)
        assert sampler.asked == 10 * len(changed_entry.contestants)


def test_regrade_equals_grade(entry, plan, graders):
    first = run(entry, plan, Ready(knows), graders)
    before = dict(Store(entry.records).verdicts)
    asked = Ready(lambda *a: False)
    again = run(entry, replace(plan, regrade=True), asked, graders)
    assert asked.asked == 0
    assert Store(entry.records).verdicts == before
    assert as_json(again) == as_json(first)
    lines = (entry.records / "verdicts.jsonl").read_text().splitlines()
    assert len(lines) == 60  # judged twice, and nothing was thrown away


def test_regrade_mends_a_verdict_that_was_wrong(entry, plan, graders):
    run(entry, plan, Ready(knows), graders)
    path = entry.records / "verdicts.jsonl"
    path.write_text(path.read_text().replace('"passed": true', '"passed": false'))
    assert not any(v.passed for v in Store(entry.records).verdicts.values())
    result = run(entry, replace(plan, regrade=True), Ready(knows), graders)
    assert sum(v[0] for v in result.right["gsm8k"]["student_1"]) == 7


def test_two_runs_on_the_same_problems(entry, plan, graders, tmp_path):
    other = replace(entry, label="other", records=tmp_path / "other")
    first = run(entry, plan, Ready(knows), graders)
    second = run(other, plan, Ready(lambda *a: True), graders)
    text = markdown([first, second])
    assert "| other - run | +40.0 [" in text
    assert "| run: student_0 | 50.0 [" in text


def test_pass_at_k_of_samples(entry, plan, graders):
    drawn = replace(plan, temperature=0.8, samples=4)
    sampler = Ready(lambda name, number, sample: name != "base" and sample == 0)
    text = markdown([run(entry, drawn, sampler, graders)])
    assert "**pass@1**, 4 samples a problem" in text
    assert "| student_0 | 25.0 [" in text
    assert "**pass@4**" in text
    assert "| student_0 | 100.0 [" in text
    assert "pass@16" not in text
