"""`azr-population benchmark` from targets to the table, on problems of our own."""

import json
import shutil
from pathlib import Path

import needs
import pandas as pd
import pytest
from made_up_problems import HUMANEVAL_ROWS, adapter, write_jsonl
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.cli import app, main
from azr_population.errors import UserError

needs.module("inspect_ai", "-e '.[eval]'")
from inspect_ai import eval as inspect_eval  # noqa: E402
from inspect_ai.log import list_eval_logs, read_eval_log  # noqa: E402
from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi  # noqa: E402

from azr_population.eval.benchmark import provider  # noqa: E402
from azr_population.eval.benchmark import run as benchmark_run  # noqa: E402
from azr_population.eval.benchmark.benchmarks import read_benchmark  # noqa: E402
from azr_population.eval.benchmark.mathematics import MathProblem  # noqa: E402
from azr_population.eval.benchmark.problem import VerdictLost  # noqa: E402
from azr_population.eval.benchmark.run import BenchmarkSettings, run_benchmarks  # noqa: E402
from azr_population.eval.benchmark.tasks import TASKS  # noqa: E402
from azr_population.reading.run_data import benchmark_figures  # noqa: E402


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    rows = [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"} for n in range(3)]
    write_jsonl(tmp_path / "data/gsm8k/test.jsonl", rows)
    write_jsonl(tmp_path / "data/HumanEvalPlus.jsonl", HUMANEVAL_ROWS)
    return str(tmp_path / "data")


def settings(data, **more):
    defaults = app.commands["benchmark"].make_context("benchmark", []).params
    options = {
        name: defaults[name] for name in BenchmarkSettings.__annotations__ if name in defaults
    }
    given = {"benchmarks": "gsm8k", "data": data, "max_tokens": 4, **more}
    return BenchmarkSettings(**options | given)


def logs(folder):
    return [read_eval_log(log) for log in list_eval_logs(str(folder))]


def test_a_run_is_asked_in_one_batch_and_what_is_done_is_not_asked_again(
    data, played, monkeypatch, tmp_path
):
    batches = []
    generate = provider.SharedRollout.generate

    def recorded(self, requests):
        batches.append([request.target.name for request in requests])
        return generate(self, requests)

    monkeypatch.setattr(provider.SharedRollout, "generate", recorded)
    provider.shared_rollout.cache_clear()
    (played / "metrics.jsonl").write_text('{"step": 7}\n')
    about = settings(data, benchmarks="gsm8k,humaneval_plus", limit=1)
    results = run_benchmarks([str(played)], about, tmp_path / "table.csv")
    assert sum(map(len, batches)) == 4 * 2
    assert any(len(set(batch)) > 1 for batch in batches)
    assert set(results["column"]) == {"HumanEval+", "GSM8K", "all"}
    assert list(results["model"].unique())[:2] == ["base", "student_0"]
    assert set(results["role"]) == {"base", "model", "summary"}
    assert results[results["role"] == "base"]["difference"].isna().all()
    assert len(pd.read_csv(tmp_path / "table.csv")) == len(results) == 7 * 3
    figures = json.loads((played / "evaluation/figures.json").read_text())
    assert figures["lines"][0]["role"] == "summary" and figures["temperature"] == 0
    assert figures["step"] == 7
    batches.clear()
    run_benchmarks([str(played)], about, tmp_path / "table.tex")
    assert not batches
    # A member that was trained on is another model.
    shutil.rmtree(played / "members/student_0")
    adapter(played / "members/student_0", seed=9)
    run_benchmarks([str(played)], about, tmp_path / "table.md")
    assert {name for batch in batches for name in batch} == {"student_0"}
    assert (tmp_path / "table.md").read_text().count("\n") == 2 + 7


def test_a_changed_file_is_asked_anew_and_figures_name_the_file_of_their_logs(
    data, tmp_path, monkeypatch
):
    def identity():
        read_benchmark.cache_clear()  # as in a new process
        run_benchmarks([str(nano_base_path())], settings(data, limit=1, logs=tmp_path))
        (figures,) = Path("evaluations").glob("*/figures.json")
        return json.loads(figures.read_text())["benchmarks"][0]["data"]

    before = identity()
    write_jsonl(Path(data) / "gsm8k/test.jsonl", [{"question": "3?", "answer": "#### 3"}])
    after = identity()
    assert before != after
    asked = logs(tmp_path / "logs")
    assert {log.eval.metadata["data"] for log in asked} == {before, after} and len(asked) == 2
    with refuses(before):  # as `inspect eval-retry` of the first log
        TASKS["gsm8k"](data=data, identity=before)

    def then_the_file_changes(*arguments, **options):
        done = eval_set(*arguments, **options)
        write_jsonl(Path(data) / "gsm8k/test.jsonl", [{"question": "4?", "answer": "#### 4"}])
        read_benchmark.cache_clear()
        return done

    eval_set = benchmark_run.eval_set
    monkeypatch.setattr(benchmark_run, "eval_set", then_the_file_changes)
    assert identity() == after


def test_the_base_of_two_runs_is_asked_once(data, played, tmp_path):
    other = adapter(tmp_path / "mine", seed=5)
    figures = run_benchmarks([str(played), str(other)], settings(data, members="teachers", limit=1))
    assert len(figures[figures["model"] == "base"]) == 2
    asked = [log.eval.model for log in logs(played / "evaluation/logs")]
    asked += [log.eval.model for log in logs(tmp_path / "evaluations/mine/logs")]
    assert len(asked) == 3


def test_two_targets_of_one_name_are_refused_before_anything_is_asked(data, played, monkeypatch):
    monkeypatch.setattr(benchmark_run, "eval_set", None)
    other = shutil.copytree(played, played.parent / "other")
    with refuses("student_0"):
        run_benchmarks([f"{run}/student_0" for run in (played, other)], settings(data))


def test_samples_are_reproducible_whatever_is_beside_them(data, played):
    def texts(target, **more):
        name = str(more.get("logs"))
        run_benchmarks([str(target)], settings(data, samples=3, limit=2, **more))
        return {
            (log.eval.model.rpartition("/")[2], str(s.id), s.epoch): s.output.completion
            for log in logs(f"{name}/logs")
            for s in log.samples
        }

    together = texts(played, logs=played / "one")
    alone = texts(played / "student_0", logs=played / "two", batch_size=2)
    assert len(set(together.values())) > 4
    assert alone == {key: together[key] for key in alone}


@modelapi(name="recited")
class Recited(ModelAPI):
    """Gives the answers that it was made with, in turn."""

    def __init__(self, model_name, base_url=None, api_key=None, config=None, texts=(), plain=False):
        super().__init__(model_name)
        self.texts, self.plain = iter(texts), plain

    async def generate(self, input, tools, tool_choice, config):
        output = ModelOutput.from_content("recited", next(self.texts))
        output.metadata = {"plain": self.plain}
        return output


def mock(texts, **more):
    return get_model("recited/texts", texts=texts, memoize=False, **more)


def scores(log):
    assert log.status == "success", log.error
    return [next(iter(sample.scores.values())).value for sample in log.samples]


def test_any_provider_can_be_asked(data):
    answers = ["<answer>\\boxed{0}</answer>", "it is 2", "<answer>\\boxed{4.0}</answer>"]
    task = TASKS["gsm8k"](data=data)
    (log,) = inspect_eval(task, model=mock(answers), max_connections=1)
    assert scores(log) == ["C", "I", "C"]
    programs = [f"```python\n{r['prompt']}{r['canonical_solution']}```" for r in HUMANEVAL_ROWS]
    task = TASKS["humaneval_plus"](data=data)
    arguments = [programs[0], programs[0]]
    (log,) = inspect_eval(task, model=mock(arguments), max_connections=1)
    assert scores(log) == ["C", "I"]


def test_a_plain_prompt_is_the_beginning_of_the_program(data):
    bodies = [row["canonical_solution"] for row in HUMANEVAL_ROWS]
    task = TASKS["humaneval_plus"](data=data)
    (log,) = inspect_eval(task, model=mock(bodies, plain=True), max_connections=1)
    assert scores(log) == ["C", "C"]


def test_a_lost_verdict_is_the_error_of_its_sample_and_of_no_other(data, monkeypatch, tmp_path):
    judge, batches = MathProblem.judge, []

    def killed_at_the_second(answers):
        batches.append([problem.id for problem, _ in answers])
        if "gsm8k/1" in batches[-1]:
            raise VerdictLost("a reader was killed")
        return judge(answers)

    target, about = [str(nano_base_path())], settings(data, logs=tmp_path)
    with monkeypatch.context() as patch:
        read_benchmark.cache_clear()
        TASKS["gsm8k"](data=data)  # its self-test is passed
        patch.setattr(MathProblem, "judge", killed_at_the_second)
        with refuses("a reader was killed"):
            run_benchmarks(target, about)
    assert ["gsm8k/1"] in batches  # once more, alone
    (log,) = logs(tmp_path / "logs")
    assert {str(s.id): bool(s.error) for s in log.samples} == {
        "gsm8k/0": False, "gsm8k/1": True, "gsm8k/2": False,
    }  # fmt: skip
    assert not any(sample.scores for sample in log.samples if sample.error)
    assert run_benchmarks(target, about)["problems"].max() == 3


def test_figures_without_an_interval_are_read_by_compare(tmp_path):
    rows = [
        {"label": "run", "model": model, "benchmark": "gsm8k", "problem": problem}
        | {"epoch": epoch, "correct": epoch == 1, "data": "a file"}
        for model in ("base", "student_0")
        for problem in "abc"
        for epoch in (1, 2)
    ]
    path = tmp_path / "figures.json"
    benchmark_run._write_figures(path, pd.DataFrame(rows), settings(""), None)
    cell = json.loads(path.read_text())["lines"][0]["cells"]["GSM8K"]
    assert cell == {"value": 0.5, "low": None, "high": None, "problems": 3}
    assert benchmark_figures(path)["mean"] == 0.5


def test_a_rollout_of_one_s_own_is_run_where_the_user_typed_it(data, tmp_path, monkeypatch):
    module = "azr_population.engines.torch_rollout"
    source = f"from {module} import TorchRollout\nclass Mine(TorchRollout): pass\n"
    (tmp_path / "own_rollout.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    api = provider.PopulationAPI("nano", rollout="own_rollout.Mine")
    with pytest.raises(UserError) as refused:  # as of a log that `inspect eval-retry` reads
        api.shared._load({api.target})
    assert refused.value.key == "engine.rollout"
    about = settings(data, rollout="own_rollout.Mine", limit=1)
    assert len(run_benchmarks([str(nano_base_path())], about)) == 1


def test_a_prompt_longer_than_the_context_is_said_to_be_so(data, capsys):
    row = {"question": "x" * 4000, "answer": "#### 1"}
    write_jsonl(Path(data) / "gsm8k/test.jsonl", [row])
    run_benchmarks([str(nano_base_path())], settings(data))
    assert "1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nowhere"],
        ["nano", "--benchmarks", "gsm9"],
        ["nano", "--out", "table.doc"],
        ["nano", "--out", "a_file/table.md"],
        ["nano", "--out", "a_folder.md"],
        ["nano", "--out", "/proc/table.md"],
        ["nano", "--benchmarks", "aime24"],
    ],
)
def test_what_cannot_be_asked_is_one_line(data, arguments, capsys, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    monkeypatch.setattr(benchmark_run, "eval_set", None)  # nothing is asked
    Path("a_file").touch()
    Path("a_folder.md").mkdir()
    typed = ["benchmark", "--data", data, "--benchmarks", "gsm8k"]
    assert main([*typed, *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_list_names_what_is_missing(data, capsys, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    assert main(["benchmark", "--list", "--data", data]) == 0
    printed = capsys.readouterr().out
    assert "aime24/test.jsonl" in printed


def test_ctrl_c_is_one_and_what_was_asked_is_kept(data, monkeypatch, capsys):
    # Inspect catches it, and returns the logs that are whole.
    monkeypatch.setattr(benchmark_run, "eval_set", lambda tasks, **options: (True, []))
    assert main(["benchmark", "nano", "--data", data, "--benchmarks", "gsm8k"]) == 130
    assert "logs" in capsys.readouterr().out
