"""Packaging. The floors are what AZR's own environment has: installing this must not move it."""

from pathlib import Path

from setuptools import find_namespace_packages, setup

setup(
    name="azr-population",
    version="0.1.0",
    description="Co-evolving populations of LoRA adapters for reasoning self-play",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_namespace_packages(include=["azr_population*", "hydra_plugins*"]),
    include_package_data=True,
    package_data={
        "azr_population": [
            "py.typed",
            "conf/**/*.yaml",
            "azr/conf/**/*.yaml",
            "nano/weights/*",
            "recipes/arms.yaml",
            "recipes/*/recipe.yaml",
            "recipes/*/*.sh",
            "reports/**/*.html",
            "reports/**/*.css",
            "reports/**/*.js",
            "reports/**/*.npy",
        ]
    },
    install_requires=[
        "torch>=2.6",
        "transformers>=4.51",
        "peft>=0.15",
        "safetensors",
        "hydra-core>=1.3",
        "numpy",
        "trueskill>=0.4.5",
        "radon>=6",
        "scipy>=1.9",
        "rich>=13",
    ],
    extras_require={
        "verl": ["verl==0.4.1", "ray[default]>=2.46", "tensordict", "setuptools<81"],
        "vllm": ["vllm>=0.8.5"],
        "report": ["matplotlib>=3.7", "ribs>=0.9"],
        "eval": ["evalplus", "math-verify"],
        "tensorboard": ["tensorboard>=2.10"],
        "wandb": ["wandb>=0.16"],
        "browser": ["playwright"],
        "test": [
            "pytest>=8",
            "pytest-timeout",
            "hypothesis",
            "ruff",
            "mypy",
            "tensorboard",
            "wandb",
        ],
    },
    entry_points={"console_scripts": ["azr-population = azr_population.cli:main"]},
)
