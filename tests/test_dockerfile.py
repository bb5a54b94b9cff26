"""The Dockerfile's steps, as far as they can be had without docker and without a network."""

import re
import subprocess
from pathlib import Path

import needs

ROOT = Path(__file__).parents[1]


def instructions():
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines()]


def test_every_instruction_is_one_of_dockers_and_every_step_is_shell():
    kinds = {"FROM", "ARG", "ENV", "RUN", "COPY", "WORKDIR", "CMD"}
    assert instructions()[0][0] == "FROM" and {kind for kind, _ in instructions()} == kinds
    for kind, text in instructions():
        if kind == "RUN":
            done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def test_what_is_copied_is_there_and_installs():
    copied = [text.split()[0] for kind, text in instructions() if kind == "COPY"]
    assert copied == ["."]
    ignored = (ROOT / ".dockerignore").read_text().split()
    needed = (
        "setup.py",
        "pyproject.toml",
        "azr_population",
        "patches",
        "recipes",
        "hydra_plugins",
        "README.md",
    )
    assert all((ROOT / name).exists() and name not in ignored for name in needed)


@needs.azr_checkout
def test_the_pins_of_azrs_environment_are_read_and_meet_our_floors(tmp_path):
    (step,) = [text for kind, text in instructions() if text.startswith("sed ")]
    read = step.partition(" && ")[0].replace("/opt/azr/", f"{needs.AZR_HOME}/")
    read = read.replace("/opt/pins.txt", str(tmp_path / "pins.txt"))
    subprocess.run(["bash", "-c", read], check=True)
    lines = (tmp_path / "pins.txt").read_text().split()
    pins = dict(line.split("==") for line in lines)
    assert len(pins) > 150 and pins["verl"] == "0.4.1" and pins["vllm"] == "0.8.5"
    pyproject = (ROOT / "pyproject.toml").read_text()
    for name in ("torch", "transformers", "peft", "hydra-core", "ray"):
        floor = re.search(rf'"{name}(?:\[default\])?>=([\d.]+)', pyproject)
        wanted, pinned = (
            tuple(int(part) for part in text.split(".")) for text in (floor[1], pins[name])
        )
        assert wanted <= pinned, name
