"""Members' folders: what their cards tell, and that what they tell works."""

import json
import re

import made_up_problems
import pytest

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import Config, PopulationConfig
from azr_population.domains.code.domain import Code
from azr_population.engines.base_model import fingerprint
from azr_population.method.member_folders import MemberFolders
from azr_population.method.members import Rating
from azr_population.method.population import Population
from azr_population.runs import RunDirectory
from azr_population.weights.peft_folder import load_adapter

BASE = str(nano_base_path())


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    return load_adapter(made_up_problems.adapter(tmp_path_factory.mktemp("made") / "up"))


def population_of(teachers, students):
    config = PopulationConfig(teachers=teachers, students=students)
    return Population(Config(population=config), Code())


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "runs" / "mine")
    run.create("seed: 1\n", {"base": fingerprint(BASE)})
    return run


def test_a_card_tells_where_a_member_comes_from_and_no_path(run, adapter, tmp_path):
    population = population_of(1, 1)
    population.step = 7
    student = population.roster["student_0"]
    student.rating, student.generation = Rating(26.5, 3.25), 1
    birth = {"step": 5, "child": "student_0", "operator": "dare", "parents": ["student_0"]}
    run.append("lineage", [{**birth, "step": 2, "operator": "old"}, birth])
    MemberFolders(population, lambda slot: adapter, run, BASE).export()
    text = (run.members / "student_0" / "README.md").read_text()
    facts = dict(re.findall(r"^- (\w+): (.*)$", text, re.MULTILINE))
    assert facts.pop("role").startswith("student")
    assert facts == {
        "name": "student_0, after step 7",
        "rating": "mu 26.50, sigma 3.25 (TrueSkill)",
        "generation": "1",
        "lineage": "dare(student_0) at step 5",
        "run": "runs/mine",
        "base": f"nano, weights {fingerprint(BASE)}",
    }
    assert str(tmp_path) not in text and BASE not in text
    teacher = (run.members / "teacher_0" / "README.md").read_text()
    assert "lineage" not in teacher and "role: teacher" in teacher
    config = json.loads((run.members / "student_0" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == BASE, "what PEFT goes by"


def test_the_python_of_a_card_loads_the_member(run, adapter, monkeypatch):
    MemberFolders(population_of(0, 0), lambda slot: adapter, run, BASE).export()
    folder = run.members / "agent_0"
    text = (folder / "README.md").read_text()
    assert "rating" not in text and "role: agent" in text
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code, loaded := {})
    assert loaded["model"].peft_config["default"].r == 4
    assert loaded["tokenizer"].decode(loaded["tokenizer"]("<PO>")["input_ids"]) == "<PO>"


@pytest.mark.parametrize(
    ("record", "first", "scores", "best"),
    [
        ("metrics", 0.0, {"student_0": 0.2, "student_1": 0.3}, "student_1"),
        ("metrics", 0.25, {"student_0": 0.3, "student_1": 0.1}, "student_0"),
        ("validations", 0.25, {"student_0": 0.3, "student_1": 0.1}, "student_0"),
        ("metrics", 0.3, {"student_0": 0.3, "student_1": 0.1}, "student_1"),
        ("validations", 0.3, {"student_0": 0.3, "student_1": 0.1}, "student_1"),
    ],
)
def test_the_best_member_of_all_evals_is_kept(run, adapter, record, first, scores, best):
    population = population_of(1, 2)
    folders = MemberFolders(population, lambda slot: adapter, run, BASE)
    population.step = 1
    folders.keep_best({"student_1": first})
    of_member = {"student_1/eval/greedy": first, "member": "student_1", "shares": {"math": first}}
    run.append(record, [{"step": 1} | of_member])
    population.step = 7
    if record == "metrics":  # a run has written the step's own scores before
        run.append(record, [{"step": 7, **{f"{n}/eval/greedy": s for n, s in scores.items()}}])
    folders.keep_best(scores)
    text = (run.members / "best" / "README.md").read_text()
    facts = dict(re.findall(r"^- (\w+): (.*)$", text, re.MULTILINE))
    step = 1 if first == 0.3 else 7
    assert facts["name"] == f"{best}, after step {step}" and float(facts["eval"]) == 0.3
