"""Packaging. The floors are what AZR's own environment has: installing this must not move it.

A new major release of transformers changed how bases are read, so each has to be tried first.
"""

import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

# Two rooms lie beside the package, where readers look for them, and are imported from within it.
BESIDE = {"azr_population.patches": "patches", "azr_population.recipes": "recipes"}

# evalplus 0.2 has other names for its rules. 0.3.1 holds protobuf below 6, and so TensorBoard below
# 2.21, which pip sees to when both are asked for in one go.
EVAL = ["evalplus>=0.3.1", "httpx>=0.27", "math-verify[antlr4_9_3]>=0.7", "pebble>=5"]

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
LINK = re.compile(r"!?\[([^\]]+)\]\((?!https?:)([^)]+)\)")
"""To another file of ours. The project has no address of its own, so a package index would look for
that file on the index."""


def without_link(link: re.Match[str]) -> str:
    """What the link says, and where the file lies in the source distribution."""
    text, path = link.groups()
    return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}`)"


setup(
    name="azr-population",
    version="0.2.0",
    description="Co-evolving populations of LoRA adapters for reasoning self-play",
    long_description=LINK.sub(without_link, README),
    long_description_content_type="text/markdown",
    keywords=["self-play", "LoRA", "population based training", "reinforcement learning", "veRL"],
    project_urls={
        "PopuLoRA (the method)": "https://arxiv.org/abs/2605.16727",
        "Absolute Zero Reasoner (the host)": "https://github.com/LeapLabTHU/Absolute-Zero-Reasoner",
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=[*find_namespace_packages(include=["azr_population*", "hydra_plugins*"]), *BESIDE],
    package_dir=BESIDE,
    package_data={
        "azr_population": [
            "py.typed",
            "config/**/*.yaml",
            "bases/nano/weights/*",
            "domains/*/*.npy",
            "pages/web/*.html",
            "pages/web/*.css",
            "pages/web/*.js",
        ],
        "azr_population.recipes": [
            "arms.yaml",
            "*/recipe.yaml",
            "*/*.py",
            "*/*.sh",
            "runs/**/*.yaml",
            "runs/**/*.json",
        ],
    },
    install_requires=[
        "torch>=2.6",
        "transformers>=4.51,<6",
        "peft>=0.15,<1",
        "huggingface_hub",
        "safetensors",
        "hydra-core>=1.3",
        "numpy",
        "trueskill>=0.4.5",
        "radon>=6",
        "scipy>=1.15",
        "rich>=13",
        "jinja2>=3",
    ],
    extras_require={
        "smollm2": ["gguf>=0.10"],
        # veRL 0.9.1 imports the last three without asking for them.
        "verl": [
            "verl>=0.4.1",
            "ray[default]>=2.46",
            "tensordict",
            "setuptools<81",
            "cachetools",
            "fastapi",
            "uvicorn",
        ],
        # What AZR's own modules import; it has no package to install.
        "azr": [
            "autopep8",
            "black",
            "complexipy",
            "fire",
            "latex2sympy2-extended",
            "math-verify",
            "pebble",
            "pylatexenc",
            "python-dateutil",
            "regex",
            "timeout-decorator",
        ],
        "vllm": ["vllm>=0.8.5"],
        "report": ["matplotlib>=3.7"],
        "eval": EVAL,
        "tensorboard": ["tensorboard>=2.10"],
        "wandb": ["wandb>=0.16"],
        "trackio": ["trackio>=0.20; python_version >= '3.10'"],
        "completion": ["shtab>=1.7"],
        "docs": ["mkdocs-material>=9.5", "mkdocstrings[python]>=0.26"],
        "browser": ["playwright"],
        "test": [
            "pytest>=8",
            "pytest-timeout",
            "hypothesis",
            *EVAL,
            "gguf",
            "setuptools>=70.1",
            "ruff",
            "mypy",
            "tensorboard",
            "wandb",
            "nbclient",
            "ipykernel",
        ],
    },
    entry_points={"console_scripts": ["azr-population = azr_population.cli:main"]},
)
