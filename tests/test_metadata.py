"""What a package index would show, the lock of a laptop, and the Dockerfile's pins."""

import json
import re
import subprocess
import sys
from pathlib import Path

import needs
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "constraints" / "laptop.txt").read_text(encoding="utf-8")
LOCKED = [
    Requirement(line.rstrip("\\ ")) for line in LOCK.splitlines() if re.match(r"[a-z0-9]", line)
]


def test_links_lead_somewhere_in_readme_and_on_an_index():
    shown = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "--long-description"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", shown))
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()):
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_lock_fits_pyproject(python):
    machine = {"python_version": python, "python_full_version": f"{python}.0"}
    machine |= {"sys_platform": "linux", "platform_machine": "x86_64"}
    locked = {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in LOCKED
        if pin.marker is None or pin.marker.evaluate(machine)
    }
    for requirement in map(Requirement, PROJECT["dependencies"]):
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, requirement


@pytest.mark.azr
def test_the_dockerfile_reads_azrs_pins_and_they_meet_our_floors(tmp_path):
    needs.azr_file("azr_env.yml")
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    read = re.search(r"^RUN (sed .*?) && ", text, re.MULTILINE)[1]
    read = read.replace("/opt/azr/", f"{needs.AZR_HOME}/")
    subprocess.run(
        ["bash", "-c", read.replace("/opt/pins.txt", str(tmp_path / "pins.txt"))], check=True
    )
    pins = dict(line.split("==") for line in (tmp_path / "pins.txt").read_text().split())
    assert len(pins) > 150 and pins["verl"] == "0.4.1" and pins["vllm"] == "0.8.5"
    floors = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["verl"]]
    for requirement in map(Requirement, floors):
        if requirement.name in (
            "torch",
            "transformers",
            "peft",
            "huggingface_hub",
            "hydra-core",
            "ray",
        ):
            assert requirement.specifier.contains(Version(pins[requirement.name])), requirement


def test_the_workflow_takes_actions_by_digest_and_keeps_no_token():
    for file in (ROOT / ".github/workflows").iterdir():
        steps = [
            step
            for job in yaml.safe_load(file.read_text())["jobs"].values()
            for step in job["steps"]
        ]
        used = [step for step in steps if "uses" in step]
        assert used and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in used)
        checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.today"])
def test_an_image_is_pinned_and_runs_as_a_user(name):
    text = re.sub(r"\\\n\s*", "", (ROOT / name).read_text())
    assert pinned(*re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    users = re.findall(r"^USER (.+)$", text, re.MULTILINE)
    assert users and users[-1] not in ("root", "0")
    installs = re.findall(r"pip install .*?(?= && |\n)", text)
    assert installs and all(re.search(r" (-c|-r|--constraint) /", line) for line in installs)


def test_the_dev_container_is_pinned():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert pinned(container["image"])


def pinned(*images):
    """Whether all images are named by tag and digest."""
    return images and all(
        re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in images
    )


def test_no_image_gets_secrets_runs_or_environments():
    left_out = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".git", ".env", ".env.*", ".venv*", "runs"} <= set(left_out)


@pytest.mark.parametrize("name", ["pins.txt", "current.txt", "laptop.txt"])
def test_setuptools_is_pinned(name):
    text = (ROOT / "constraints" / name).read_text()
    assert re.search(r"^setuptools==[\d.]+", text, re.MULTILINE)


def test_licences_of_what_is_shipped_are_files_of_the_wheel():
    texts = [(ROOT / file).read_text() for file in PROJECT["license-files"]]
    for owner in ("Apache License", "University of Washington Interactive Data Lab"):
        assert any(owner in text for text in texts)
