"""A domain from a file outside the package, through a real run, its records and its pages."""

import json
import sys
from pathlib import Path

import pytest
import torch
from refusals import refuses

from azr_population import registry
from azr_population.cli import main
from azr_population.config.schema import TaskConfig
from azr_population.domains.known import find_domain
from azr_population.registry import trust

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_domain_of_ones_own_is_played_recorded_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    run = tmp_path / "equations"
    settings = ["population=1t1s", "population.batch_size=24", "run.steps=2"]
    overrides = [
        "task.domain=equations.Equations",
        "base.prompt_format=equations",
        "eval.tasks_per_type=4",
    ]
    other = tmp_path / "other_seed"
    for folder, seed in ((run, 1), (other, 2)):
        assert main(["train", *settings, *overrides, f"seed={seed}", f"run.dir={folder}"]) == 0
    tasks = [json.loads(line) for line in (run / "tasks.jsonl").read_text().splitlines()]
    assert tasks, "the base completes such programs"
    for task in tasks:
        assert task["type"] == "equation" and task["program"].startswith("def f(x):\n    m = x")
        assert task["digits"] == sum(char.isdigit() for char in task["program"])
        assert ("solved" in task["reasons"]) == any(task["solved"])
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {key.split("/")[1] for key in steps[0] if key.startswith("type/")} == {"equation"}
    assert "teacher/ast_nodes" not in steps[0]
    assert steps[0]["teacher/digits"] > 0 and steps[0]["eval/greedy/equation"] > 0
    page = (run / "report.html").read_text()
    assert "find x" in page and '"Digits"' in page
    assert "digits" in page and "AST nodes" not in page.split("<main")[-1].split("<script")[0]
    capsys.readouterr()
    assert main(["show", str(run), "--verdict", "valid", "--type", "equation", "--limit", "1"]) == 0
    assert "proposes equation" in capsys.readouterr().out
    assert main(["show", str(run), "--type", "code_o"]) != 0
    # Somebody else reads the run: nothing of the domain is run, and its tasks are there as text.
    monkeypatch.setattr(registry, "_trusted", set())
    monkeypatch.delitem(sys.modules, "equations")
    find_domain.cache_clear()
    out = tmp_path / "out"
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert main(["show", str(run), "--verdict", "valid", "--limit", "1"]) == 0
    assert (
        main(["compare", f"one={run}", f"two={other}", "--out", str(tmp_path / "both.html")]) == 0
    )
    assert main(["export", str(run), "--to", "jsonl", "--out", str(out)]) == 0
    assert len((out / "tasks.jsonl").read_text().splitlines()) > 0
    assert main(["sample", str(run), "student_0"]) == 2
    assert "equations" not in sys.modules
    assert main(["--trust", "show", str(run), "--verdict", "valid", "--limit", "1"]) == 0
    assert "equations" in sys.modules


def test_the_referee_judges_equations_and_answers(referee, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    trust(["equations.Equations"])
    find_domain.cache_clear()
    domain = find_domain("equations.Equations")
    end = "\n    return m"
    texts = (
        *(f"[::-1]{end}<in>[5, 6]", f"[:3]{end}<in>[2, 2, 2]", f" // 0{end}<in>3"),
        *(f" * 3{end}<in>open('x')", f" * ({end}<in>3", "<in>4"),
    )
    asked = [domain.format("equations").parse_proposal("equation", text) for text in texts]
    assert asked[-1] is None
    first, *refused = domain.judge(asked[:-1], referee, TaskConfig())
    assert first.outputs == ("[6, 5]",)
    assert refused == ["easy", "error", "error", "syntax_error"]
    answers = ("[5, 6]", " [5,6] ", "[6]", "n", "__import__('os')")
    ((*verdicts,),) = domain.grade([(first, answers)], referee)
    assert [verdict.solved for verdict in verdicts] == [True, True, False, False, False]
    tasks = domain.eval_tasks(8, 3, ["equation"])
    graded = domain.grade([(task, [domain.answer(task)]) for task in tasks], referee)
    assert len(set(tasks)) == 8 and all(verdict.solved for (verdict,) in graded)


def test_what_is_no_domain_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    trust(["equations.EquationPrompts", "equations.Equations"])
    with refuses("task.domain"):
        find_domain("equations.EquationPrompts")
    with refuses("(did you mean code?)"):
        find_domain("cod")
    with refuses("task.types"):
        find_domain("equations.Equations").resolve_types(["code_o"])


def test_a_domain_that_fails_or_changes_the_process_is_contained(tmp_path, monkeypatch):
    (tmp_path / "own_sums.py").write_text(
        "import torch\nfrom equations import Equations\n\n"
        "class Sums(Equations):\n"
        "    def measure(self, program):\n"
        "        torch.set_default_dtype(torch.float64)\n"
        "        return super().measure(program)\n\n"
        "    def fingerprint(self, program):\n        raise SystemExit(3)\n\n"
        "    def judge(self, proposals, *_):\n        raise ValueError('cannot read this')\n\n"
        "    def eval_tasks(self, *_):\n        raise ValueError('no tasks')\n"
    )
    for folder in (EXAMPLES, tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    trust(["own_sums.Sums"])
    domain = find_domain("own_sums.Sums")
    assert domain.measure("def f(x):\n    return x")
    assert torch.get_default_dtype() == torch.float32
    with refuses("task.domain"):
        domain.fingerprint("def f(x):\n    return x")
    with refuses("task.domain"):
        domain.eval_tasks(1, 1, [])
    with pytest.raises(ValueError, match="cannot read this"):  # one problem's, not the run's end
        domain.judge([], None, TaskConfig())
