"""The benchmarks of the paper's Table 1, in its order, HumanEval's base tests, and those of every
other file in here."""

from azr_population.registry import import_modules

import_modules(__name__, ("evalplus", "livecodebench", "mathematics"))
