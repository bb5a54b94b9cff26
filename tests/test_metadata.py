"""What a package index would show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def metadata(field):
    return subprocess.run(
        [sys.executable, "setup.py", "--quiet", f"--{field}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_links_of_the_description_hold_on_an_index():
    shown = metadata("long-description")
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert all(link.startswith("https://") for link in links)
    for name in re.findall(r"`((?:docs|recipes)/[\w/.]+\.md)`", shown):
        assert (ROOT / name).is_file()


def test_links_of_readme_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()):
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize("field", ["author", "author-email", "maintainer"])
def test_nobody_is_named(field):
    assert metadata(field).strip() in ("", "None")


def test_there_are_classifiers():
    assert "Programming Language :: Python :: 3.14" in metadata("classifiers")
