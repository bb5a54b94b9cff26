"""The commands that README and docs print, found in their text. No test is in here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURES = ("trainer ",)
"""Beginnings of indented blocks that hold no commands."""
_FOREIGN = re.compile(r"\{|>>>|from |import |\w+ = |'?\+\+|(apply|series)\(")
"""Beginnings of lines that hold JSON, Python, or overrides to add to a command."""


@dataclass(frozen=True)
class Printed:
    """A command line with its page, without its comment."""

    page: str
    line: str

    def __str__(self):
        return f"{self.page}: {self.line}"


def pages():
    """Every page of the repository, but for the results that commands write."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.splitlines() if "/results/" not in name]
    return [ROOT / name for name in names]


def commands():
    """The lines of code blocks, taken apart at `&&`, and `azr-population ...` within sentences."""
    for page in pages():
        name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        for block in blocks(text):
            if block.startswith(PICTURES):
                continue
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                if not _FOREIGN.match(line):
                    command = re.sub(r"\s#.*", "", line).strip()
                    yield from (Printed(name, part) for part in command.split(" && "))
        for inline in re.findall(r"`(azr-population \w[^`]*)`", text):
            yield Printed(name, " ".join(inline.split()))


def blocks(text):
    """The indented and the fenced blocks of a page, but for Python, YAML and pictures in fences."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    other = ("python", "yaml", "mermaid")
    yield from (block for language, block in fence.findall(text) if language not in other)
    text = fence.sub("", text)
    for block in re.findall(r"(?<=\n\n)((?:    .*\n)+)", text):
        yield re.sub(r"^    ", "", block, flags=re.MULTILINE)


def install_example(folder):
    """The package of examples/plugin with its metadata, as pip installs it, in a folder."""
    plugin = shutil.copytree(ROOT / "examples" / "plugin", folder / "plugin")
    build = "from setuptools import build_meta as b; b.prepare_metadata_for_build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=plugin, check=True, capture_output=True)
    return plugin


def write_examples(folder):
    """Writes the files of docs/extending.md into a folder, and returns their names."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    files = re.findall(r"^```python\n# (my_\w+\.py)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")
    return [name for name, _ in files]
