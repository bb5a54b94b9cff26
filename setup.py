"""What pyproject.toml cannot say: the folders beside the package, and README's links."""

import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

# Two rooms lie beside the package, where readers look for them, and are imported from within it.
BESIDE = {"azr_population.patches": "patches", "azr_population.recipes": "recipes"}

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
LINK = re.compile(r"!?\[([^\]]+)\]\((?!https?:)([^)]+)\)")
"""To another file of ours. The project has no address of its own, so a package index would look for
that file on the index."""


def without_link(link: re.Match[str]) -> str:
    """What the link says, and where the file lies in the source distribution."""
    text, path = link.groups()
    return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}`)"


setup(
    long_description=LINK.sub(without_link, README),
    long_description_content_type="text/markdown",
    packages=[*find_namespace_packages(include=["azr_population*", "hydra_plugins*"]), *BESIDE],
    package_dir=BESIDE,
    package_data={
        "azr_population": [
            "py.typed",
            "config/**/*.yaml",
            "bases/nano/weights/*",
            "domains/*/*.npy",
            "analysis/pages/*",
        ],
        "azr_population.recipes": [
            "arms.yaml",
            "*/*/recipe.yaml",
            "*/*/*.py",
            "runs/**/*.yaml",
            "runs/**/*.json",
            "runs/**/*.jsonl*",
        ],
    },
)
