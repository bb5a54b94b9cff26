"""The benchmarks of the paper's Table 1, in its order, HumanEval's base tests, and those of every
other file in here."""

from azr_population.registry import import_modules

TABLE_1 = (
    *("humaneval_plus", "mbpp_plus", "livecodebench"),
    *("aime24", "aime25", "amc23", "math500", "minerva", "gsm8k", "olympiadbench"),
)

import_modules(__name__, TABLE_1)
