"""What some tests need beyond `bash scripts/test.sh`; the README has one line that installs it all.

A test that lacks something skips, and says what to install.
"""

import os
import sys

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


def from_azr(name):
    """A module of AZR's checkout, which is put on the path; it imports packages of its own."""
    from azr_population.patches import verl_shims

    if AZR_HOME not in sys.path:
        sys.path.insert(0, AZR_HOME)
    verl_shims.install()  # for later versions of veRL
    reason = "needs what AZR imports: pip install -e '.[azr]'"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)
