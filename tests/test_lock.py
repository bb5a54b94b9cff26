"""constraints/laptop.txt: hashes of what `pip install .` needs on a laptop, from any index."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "constraints" / "laptop.txt").read_text(encoding="utf-8")
LOCKED = [
    Requirement(line.rstrip("\\ ")) for line in LOCK.splitlines() if re.match(r"[a-z0-9]", line)
]


def test_it_names_no_host_and_has_a_hash_for_every_package():
    assert "://" not in LOCK and "index-url" not in LOCK and "find-links" not in LOCK
    entries = re.split(r"\n(?=[a-z0-9])", LOCK)[1:]
    assert len(entries) == len(LOCKED) > 50
    assert all("--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_it_fits_pyproject(python):
    machine = {"python_version": python, "python_full_version": f"{python}.0"}
    machine |= {"sys_platform": "linux", "platform_machine": "x86_64"}
    taken = {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in LOCKED
        if one.marker is None or one.marker.evaluate(machine)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for wanted in map(Requirement, project["dependencies"]):
        assert taken[canonicalize_name(wanted.name)] in wanted.specifier, wanted
