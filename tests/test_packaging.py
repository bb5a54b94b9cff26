"""What an installation holds: built from a checkout and from a download, with and without links."""

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout"),
    pytest.mark.timeout(900),
]


def run(*command, cwd, **variables):
    """Runs a command to its end and returns what it printed; a failure shows all of it."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def archive(form, tmp_path):
    """The working tree with its new files as `git archive` packs it, committed or not."""
    index = {"GIT_INDEX_FILE": str(tmp_path / "index")}
    run("git", "add", "--all", cwd=ROOT, **index)
    tree = run("git", "write-tree", cwd=ROOT, **index).strip()
    return subprocess.check_output(["git", "archive", f"--format={form}", tree], cwd=ROOT)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A git checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    with tarfile.open(fileobj=io.BytesIO(archive("tar", tmp_path_factory.mktemp("tar")))) as tar:
        tar.extractall(folder)
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def download(tmp_path_factory):
    """What a host's "download as zip" gives: no git, and links come out as text files."""
    folder = tmp_path_factory.mktemp("download")
    packed = io.BytesIO(archive("zip", tmp_path_factory.mktemp("zip")))
    zipfile.ZipFile(packed).extractall(folder)
    return folder


def build_wheel(source, out):
    """The wheel built from a folder or from a source distribution."""
    # Without an environment of its own: that would ask the package index for setuptools.
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--wheel-dir", out]
    run(sys.executable, "-m", "pip", "wheel", *options, source, cwd=out)
    return next(out.glob("*.whl"))


def build_sdist(source, out):
    """The source distribution built from a folder."""
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(out)!r})"
    run(sys.executable, "-c", code, cwd=source)
    return next(out.glob("*.tar.gz"))


def environment(folder):
    """A virtual environment that has our requirements, and nothing of this checkout: `.pth` files
    of a folder that is itself named by a `.pth` file are not read."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    there = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    (Path(there.strip()) / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python, *what, cwd):
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--ignore-installed", "--quiet"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what, cwd=cwd)


def names(wheel):
    return sorted(zipfile.ZipFile(wheel).namelist())


def test_wheels_and_source_distributions_hold_the_same_whatever_they_are_made_from(
    checkout, download, tmp_path
):
    wheels = []
    for source in (checkout, download):
        made = {kind: tmp_path / source.name / kind for kind in ("wheel", "sdist", "from_sdist")}
        for folder in made.values():
            folder.mkdir(parents=True)
        wheels.append(build_wheel(source, made["wheel"]))
        wheels.append(build_wheel(build_sdist(source, made["sdist"]), made["from_sdist"]))
    held = names(wheels[0])
    assert [names(wheel) == held for wheel in wheels] == [True] * 4
    tracked = run("git", "ls-files", cwd=checkout).splitlines()
    assert not [path for path in tracked if (checkout / path).is_symlink()]
    for path in tracked:
        if path.endswith(".py") and path.startswith(("azr_population/", "hydra_plugins/")):
            assert path in held
        if path.startswith("patches/") and path.endswith(".py"):
            assert f"azr_population/{path}" in held
        if path.startswith("recipes/") and "/results/" not in path and not path.endswith(".md"):
            assert f"azr_population/{path}" in held
    assert not [path for path in held if path.startswith(("tests", "benchmarks", "recipes"))]


def test_an_installed_wheel_lists_draws_and_trains(download, tmp_path):
    wheel = build_wheel(download, tmp_path)
    python = environment(tmp_path / "venv")
    install(python, wheel, cwd=tmp_path)
    assert "fig4_complexity" in command(python, tmp_path, "recipe", "--list")
    command(python, tmp_path, "recipe", "fig4_complexity", "--from-results", "--out", "out")
    results = tmp_path / "out" / "results" / "fig4_complexity"
    assert (results / "summary.md").is_file()
    assert (results / "ast_nodes.svg").is_file()
    small = ["population=1t1s", "population.batch_size=6", "eval.tasks_per_type=2", "run.steps=1"]
    command(python, tmp_path, "train", *small, "run.dir=run", "seed=1")
    assert (tmp_path / "run" / "report.html").is_file()
    assert_complete(python, tmp_path, tmp_path / "venv")


def test_an_editable_installation_imports_what_lies_beside_the_package(download, tmp_path):
    python = environment(tmp_path / "venv")
    install(python, "--editable", download, cwd=tmp_path)
    assert "fig4_complexity" in command(python, tmp_path, "recipe", "--list")
    assert_complete(python, tmp_path, download)


def test_a_checkout_on_the_path_is_complete_without_an_installation(download, tmp_path):
    python = environment(tmp_path / "venv")
    assert_complete(python, tmp_path, download, PYTHONPATH=str(download))


def command(python, cwd, *typed):
    return run(python.with_name("azr-population"), *typed, cwd=cwd)


def assert_complete(python, cwd, home, **variables):
    """Everything is imported from under `home`, and Hydra finds the plugin."""
    code = """
from importlib.resources import files
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
import azr_population.patches.mechanism, azr_population.recipes
print(azr_population.__file__)
print(azr_population.patches.mechanism.__file__)
print(azr_population.recipes.__file__)
for name in ("config", "bases/nano/weights"):
    print(next(files("azr_population").joinpath(name).iterdir()))
found = Plugins.instance().discover(SearchPathPlugin)
print(*[plugin.__name__ for plugin in found])
"""
    *places, plugins = run(python, "-c", code, cwd=cwd, **variables).splitlines()
    assert [place for place in places if not Path(place).is_relative_to(home)] == []
    assert "AzrPopulationSearchPath" in plugins
