"""What README and docs print is true: Python runs, our commands are accepted, examples work."""

import ast
import doctest
import importlib.util
import re
import runpy
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest
from printed import commands, install_example, write_examples

import azr_population
from azr_population.cli import app, main
from azr_population.config.inside_azr import PopulationSettings, arms
from azr_population.config.load import load_config
from azr_population.config.schema import Config
from azr_population.experiments.recipes import read_arms, read_recipe
from azr_population.hosts.local.local_plan import resolve
from azr_population.hosts.local.run import Run
from azr_population.reading.run_data import RunData
from azr_population.registry import trust

ROOT = Path(__file__).parents[1]
EXTRAS = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
PLACEHOLDER = re.compile(r"NAME|<.*>|\.\.\.")


@pytest.mark.integration
def test_the_python_of_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / "python.md"), module_relative=False, verbose=False
    )
    assert failed == 0 and tried > 15


def test_every_public_name_is_there():
    for name in azr_population.__all__:
        assert getattr(azr_population, name) is not None
    with pytest.raises(AttributeError):
        _ = azr_population.refree
    assert dir(azr_population) == sorted(azr_population.__all__)


def check_ours(words):
    """`azr-population ...`"""
    words = [word for word in words if word != "..."]
    is_name = all(word.isalpha() for word in words if word != "--help")
    if is_name or PLACEHOLDER.search(" ".join(words)):
        # A command that is named, or has places to fill in.
        named = [word for word in words if word != "--help"]
        assert main([*(named if is_name else named[:1]), "--help"]) == 0
        return
    if words[0] == "--trust":
        words = words[1:]
    command = app.commands[words[0]]
    params = command.make_context(words[0], words[1:]).params
    if words[0] == "azr":
        check_azr(params["overrides"])
    if words[0] == "train":
        config = load_config([re.sub(r"\$\w+", "1", text) for text in params["overrides"]])
        trust(config)
        resolve(config)
    if words[0] == "recipe" and params["name"]:
        read_recipe(params["name"], read_arms())


def check_azr(overrides):
    """Populations and settings that there are."""
    for word in overrides:
        key, _, value = word.lstrip("+").partition("=")
        assert not word.startswith("+population=") or value in arms()
        if key.startswith("population."):
            assert key.split(".")[1] in PopulationSettings.model_fields


def check_pip(words):
    """Extras are those of pyproject.toml."""
    for extras in re.findall(r"\[([\w,]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= EXTRAS


def check_python(words):
    """A module or a file that is there, with the options that it has."""
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1])
    else:
        text = (ROOT / words[0]).read_text()
        assert all(f'"{option}"' in text for option in words if option.startswith("--"))


def check_file(words):
    """A script, or a folder or file of tests."""
    assert (ROOT / words[0]).exists()


CHECKS = {
    "azr-population": check_ours, "pip": check_pip, "python": check_python, "bash": check_file,
    "pytest": check_file,
}  # fmt: skip
"""By program; other people's are not checked."""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """examples/plugin, installed."""
    return install_example(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def extension_folder(tmp_path, monkeypatch, plugin):
    """A folder with the files of docs/extending.md, in which everything is started."""
    monkeypatch.syspath_prepend(plugin)
    names = write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield tmp_path
    for name in names:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.parametrize("printed", list(dict.fromkeys(commands())), ids=str)
def test_every_printed_command_is_taken(printed, capsys, monkeypatch, extension_folder):
    # Whether Ray, veRL and vLLM are installed here is not what a page says.
    monkeypatch.setattr("azr_population.engines.vllm_versions.version", lambda: (0, 28, 0))
    for check in ("method.run_plan.check_engine", "hosts.local.local_plan.check_loggers"):
        monkeypatch.setattr(f"azr_population.{check}", lambda *arguments: None)
    # Nor do the adapters that it names have to be there.
    monkeypatch.setattr(
        "azr_population.method.config_check.check_founders", lambda *arguments: None
    )
    line = re.sub(r"<[^>]*>|\.\.\.$", "...", re.sub(r" [<>] [\w.]+", "", printed.line))
    if loop := re.fullmatch(r"for \w+ in [\w ]+; do (.*); done", line):
        line = loop[1]
    words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    if check := CHECKS.get(words[0].removeprefix(".venv/bin/")):
        check(words[1:])


def test_operators_of_installed_packages_are_listed(extension_folder, capsys):
    assert main(["evolve", "--list"]) == 0
    assert "  forget_layer  (1 parent)\n" in capsys.readouterr().out


@pytest.mark.integration
def test_what_is_ones_own_plays(extension_folder, capsys):
    small = [
        "population.batch_size=8",
        "population.samples_per_task=2",
        "eval.every=0",
        "referee.workers=1",
    ]
    (line,) = [p.line for p in commands() if "run.dir=runs/custom" in p.line]
    assert main([*shlex.split(line)[1:], *small]) == 0
    assert "sampling for 4 members\n" in capsys.readouterr().out
    run = Run(extension_folder / "runs" / "custom")
    assert [metric.name for metric in RunData(run.path).measures][-1] == "loops"
    assert all(0 <= line["loops"] <= 1 for line in run)
    assert "Programs with a loop" in (run.path / "report.html").read_text()
    births = list(run.directory.read("lineage"))
    assert births and {birth["operator"] for birth in births} == {"my_operator.shrink"}
    rows = list(run.directory.read("completions"))
    paid = {row["reward"] for row in rows if row["verdict"] == "valid"}
    assert paid and paid <= {
        (1 - rate) ** 2 - 0.3 * copies for rate in (0, 0.5, 1) for copies in (0, 1)
    }


def test_the_python_of_the_serving_page_loads_members(small_run, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/mine").symlink_to(small_run)
    page = (ROOT / "docs" / "serving.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, loaded := {})
    assert set(loaded["model"].peft_config) == {"teacher_0", "student_0"}
    assert loaded["model"].active_adapter == "teacher_0"


def test_the_python_that_reads_a_run(write_run, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/demo").symlink_to(write_run())
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "docs/diagnostics.md").read_text(), re.DOTALL)
    names = {}
    exec(block[1], names)
    run, metrics = names["run"], names["all_metrics"]()
    assert run.curve(metrics["solve_rate"]).index[0] == 1 and list(run.read("tasks"))


@pytest.fixture
def example(monkeypatch, capsys):
    """Runs a file of examples/ with these arguments and returns what it prints."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_the_example_of_operators(example, small_run, tmp_path):
    parents = (small_run / "members" / name for name in ("student_0", "teacher_0"))
    example("use_operators.py", *parents, tmp_path / "child")
    assert (tmp_path / "child" / "adapter_model.safetensors").is_file()


def test_the_example_of_a_member_in_peft(example, small_run):
    assert ">>> f(" in example("load_member.py", small_run / "members" / "teacher_0")


def test_the_example_of_a_tiny_base(example, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("def f(a):\n    return a + 1\n" * 50)
    assert example("tiny_base.py", tmp_path / "base", text).strip() == str(tmp_path / "base")
    assert (tmp_path / "base" / "model.safetensors").is_file()


@pytest.mark.integration
def test_the_comparison_in_the_docs_is_what_compare_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    arms = [f"recipes/runs/defaults/{arm}" for arm in ("single", "1t1s")]
    assert main(["compare", *arms, "--out", str(tmp_path / "ab.html")]) == 0
    printed = capsys.readouterr().out.splitlines()
    _, _, after = (ROOT / "docs/ab.md").read_text().partition("Of the picture above:\n\n")
    quoted = [line.split(" ... ") for line in after.partition("\n\n")[0].splitlines()]
    assert len(quoted) == 3
    for label, *verdict in quoted:
        (line,) = [line for line in printed if line.startswith(label.strip())]
        assert line.endswith(verdict[0] if verdict else label.strip())


@pytest.mark.parametrize(
    ("picture", "drawn"),
    [
        ("lines", "questions/population_or_not/results/lines"),
        ("skill", "questions/population_or_not/results/eval_greedy_deep"),
        ("solve_rate", "paper/fig3_dynamics/results/solve_rate"),
        ("ratings", "paper/fig5_ratings/results/mu"),
        ("children", "paper/fig6_children/results/solve_rate"),
        ("operators", "paper/fig6_children/results/operators/operators"),
        ("coverage", "paper/fig9_coverage/results/coverage"),
        ("lengths", "paper/fig19_lengths/results/proposal_tokens"),
        ("tokens", "paper/table2_wallclock/results/total_generated_tokens"),
    ],
)
def test_the_pictures_are_those_of_the_recipes(picture, drawn):
    """The site takes its pictures from docs/ alone."""
    copy, original = ROOT / f"docs/pictures/{picture}.svg", ROOT / f"recipes/{drawn}.svg"
    assert copy.read_bytes() == original.read_bytes()


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("recipes/**/README.md"),
         *ROOT.glob("azr_population/**/README.md"), *ROOT.glob("tools/**/*.md")]  # fmt: skip
PAGES.remove(ROOT / "CHANGELOG.md")  # which also names what is gone
FOREIGN = {
    "evaluation/figures.json",  # of a run
    "v1/core/kv_cache_utils.py",  # vLLM's
    "records.metrics",  # an argument of callbacks
    "report.html",  # of a run
}
"""Names of others that look like ours. Keys of AZR's `trainer` are not checked either."""


@cache
def defined():
    """Attributes by class, and names by module, those in its classes too, of the package."""
    classes, modules = {}, {}
    for file in (ROOT / "azr_population").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, set()).update(names_in(node))
            if isinstance(node, ast.Module):
                modules.setdefault(file.stem, set()).update(names_in(node))
    del modules["trainer"]
    return classes, modules


def names_in(tree):
    """Functions, classes, attributes of `self` and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def headings(text):
    """The names of a page's headings in links, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    shown = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        for line in re.findall(r"^#+ (.+)", text, re.M)
    )
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in shown}


def wrong_names(text, folder=ROOT):
    """Links, files, classes, attributes, functions and keys that the text names and that are not
    there; `folder` is the page's."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    classes, modules = defined()
    sections = {name: set(field.annotation.model_fields)
                for name, field in Config.model_fields.items()
                if hasattr(field.annotation, "model_fields")}  # fmt: skip
    sections["population"] |= PopulationSettings.model_fields.keys()
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in link and not (folder / link).exists():
            yield link
    for link, heading in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
        page = folder / link
        if page.is_dir() or (page.suffix == ".md" and page.is_file()):
            there = text if page.is_dir() else page.read_text()
            if heading not in headings(there):
                yield f"{link}#{heading}"
    for name in set(re.findall(r"`([^`\n]+)`", text)) - FOREIGN:
        if (ROOT / name).is_file():
            continue
        if re.fullmatch(r"[\w./-]+/[\w.-]+\.(py|md|yaml|json|sh|toml|patch|csv|svg)", name):
            roots = (folder, ROOT, ROOT / "azr_population", ROOT / "docs", ROOT / "tests")
            if not any((root / name).exists() for root in roots):
                yield name
        elif dotted := re.match(r"(\w+)\.(\w+)", name):
            owner, attribute = dotted.groups()
            known = classes.get(owner) or sections.get(owner) or modules.get(owner)
            is_file = attribute in ("py", "json", "jsonl", "md")
            is_class = re.fullmatch("[A-Z][a-z]+[A-Za-z]*", owner)
            if (known or is_class) and not is_file and attribute not in (known or ()):
                yield name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_pages_name_is_there(page):
    assert list(wrong_names(page.read_text(), page.parent)) == []


@pytest.mark.parametrize(
    "name",
    [
        "Step.credit", "AzrStepState.credit", "training.credits", "population.batchsize=4",
        "engine.temperature", "docs/nothing.md", "method/steps.py",
    ],
)  # fmt: skip
def test_names_that_are_not_there_are_found(name):
    assert list(wrong_names(f"see `{name}` and `Population.rate`")) == [name]
    links = "[here](nowhere.md) [there](README.md#try-it) [gone](README.md#no-such-heading)"
    assert list(wrong_names(links)) == ["nowhere.md", "README.md#no-such-heading"]
