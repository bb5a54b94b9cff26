"""What some tests need beyond `bash scripts/test.sh`; CONTRIBUTING.md has a line that installs most
of it.

A test that lacks something skips, and says what to install.
"""

import os
import sys
from pathlib import Path

import pytest

AZR_HOME = os.environ.get("AZR_HOME", "")
NO_AZR = (
    "needs AZR: git clone https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, "
    "and AZR_HOME set to its folder"
)
"""Why a test marked `azr` skips where AZR_HOME is not set."""
AZR_EXECUTOR = "absolute_zero_reasoner.utils.code_utils.python_executor"


def module(name, install):
    """The module, or a skip that says how to install it."""
    reason = f"needs {name.partition('.')[0]}: pip install {install}"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)


def verl(name="verl"):
    """veRL, or a module of it."""
    module("ray", "-e '.[verl]'")
    return module(name, "-e '.[verl]'")


def azr_on_path():
    """Puts AZR's checkout on the path, and what it needs under later versions of veRL."""
    from azr_population.patches import verl_shims

    if AZR_HOME not in sys.path:
        sys.path.insert(0, AZR_HOME)
    verl_shims.install()


def from_azr(name):
    """A module of AZR's checkout, which is put on the path; it imports packages of its own."""
    azr_on_path()
    reason = "needs what AZR imports: pip install -e '.[azr]'"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)


def azr_file(name):
    """A file or folder of AZR's checkout."""
    path = Path(AZR_HOME) / name
    if not path.exists():
        pytest.skip(f"this AZR has no {name}")
    return path
