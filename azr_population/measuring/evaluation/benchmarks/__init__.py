"""The benchmarks of the paper's Table 1, in its order, and HumanEval's base tests."""

from azr_population.measuring.evaluation.benchmarks import (  # isort: skip
    humaneval_plus,
    mbpp_plus,
    livecodebench,
    aime24,
    aime25,
    amc23,
    math500,
    minerva,
    gsm8k,
    olympiadbench,
    humaneval,
)

__all__ = [
    "aime24",
    "aime25",
    "amc23",
    "gsm8k",
    "humaneval",
    "humaneval_plus",
    "livecodebench",
    "math500",
    "mbpp_plus",
    "minerva",
    "olympiadbench",
]
