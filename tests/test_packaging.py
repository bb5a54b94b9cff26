"""What an installation holds: built from a checkout and from a download, and run as installed."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout"),
]
ALONE = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
"""Nothing is asked of a package index."""


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


@pytest.fixture(scope="module")
def download(tmp_path_factory):
    """The working tree with its new files as a host's "download as zip" gives it: no git, and links
    come out as text files."""
    folder = tmp_path_factory.mktemp("download")
    index = {"GIT_INDEX_FILE": str(tmp_path_factory.mktemp("git") / "index")}
    run("git", "add", "--all", cwd=ROOT, **index)
    tree = run("git", "write-tree", cwd=ROOT, **index).strip()
    run("git", "archive", "--format=zip", f"--output={folder}.zip", tree, cwd=ROOT)
    zipfile.ZipFile(f"{folder}.zip").extractall(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(download, tmp_path_factory):
    """The wheel built from the download."""
    return build_wheel(download, tmp_path_factory.mktemp("wheel"))


def build_wheel(source, out):
    run(sys.executable, "-m", "pip", "wheel", *ALONE, "--wheel-dir", out, source, cwd=out)
    return next(out.glob("*.whl"))


def environment(folder):
    """The Python of a virtual environment that has our requirements, and nothing of this checkout:
    `.pth` files of a folder that is itself named by a `.pth` file are not read."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    there = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    (Path(there.strip()) / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python, *what, cwd):
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--ignore-installed"]
    run(*pip, *ALONE, *what, cwd=cwd)


def test_wheel_and_source_distribution_hold_what_is_tracked(download, wheel, tmp_path):
    held = set(zipfile.ZipFile(wheel).namelist())
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", code, cwd=download)
    again = build_wheel(next(tmp_path.glob("*.tar.gz")), tmp_path)
    assert set(zipfile.ZipFile(again).namelist()) == held
    for file in (path for path in download.rglob("*") if path.is_file()):
        path = str(file.relative_to(download))
        if path.endswith(".py") and path.startswith(("azr_population/", "hydra_plugins/")):
            assert path in held
        if path.startswith("patches/") and path.endswith(".py"):
            assert f"azr_population/{path}" in held
        if path.startswith("recipes/") and "/results/" not in path and not path.endswith(".md"):
            assert f"azr_population/{path}" in held
    assert not [path for path in held if path.startswith(("tests", "perf", "recipes"))]
    licences = {Path(path).name for path in held if "/licenses/" in path}
    assert {"LICENSE", "vega_licences.txt"} <= licences


def test_an_installed_wheel_draws_and_trains(wheel, tmp_path):
    python = environment(tmp_path / "venv")
    install(python, wheel, cwd=tmp_path)
    command = python.with_name("azr-population")
    run(command, "recipe", "fig4_complexity", "--from-results", "--out", "out", cwd=tmp_path)
    assert (tmp_path / "out/results/fig4_complexity/ast_nodes.svg").is_file()
    small = ["population=1t1s", "population.batch_size=6", "eval.tasks_per_type=2", "run.steps=1"]
    run(command, "train", *small, "run.dir=run", "seed=1", cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").is_file()
    assert_complete(python, tmp_path, tmp_path / "venv")


@pytest.mark.parametrize("editable", [True, False])
def test_a_checkout_is_complete(editable, download, tmp_path):
    python = environment(tmp_path / "venv")
    if editable:
        install(python, "--editable", download, cwd=tmp_path)
    assert_complete(
        python, tmp_path, download, **({} if editable else {"PYTHONPATH": str(download)})
    )


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
