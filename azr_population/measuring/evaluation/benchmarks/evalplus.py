"""HumanEval+ and MBPP+ (Liu et al. 2023, evalplus): HumanEval's 164 problems with 80 times the
tests, and 378 problems of MBPP with 35 times."""

from functools import partial

from azr_population.measuring.evaluation.benchmark import benchmark
from azr_population.measuring.evaluation.grading.evalplus_rules import function_problem

for name, title, files, licence, release, digest in (
    (
        "humaneval_plus", "HumanEval+", "HumanEvalPlus*.jsonl*", "Apache-2.0 (problems MIT)",
        "v0.1.10", "fe585eb4df8c88d844eeb463ea4d0302",
    ),
    (
        "mbpp_plus", "MBPP+", "MbppPlus*.jsonl*", "Apache-2.0 (problems CC BY 4.0)",
        "v0.2.0", "ee43ecabebf20deef4bb776a405ac5b1",
    ),
):  # fmt: skip
    dataset = name.removesuffix("_plus")
    benchmark(
        name,
        title=title,
        area="code",
        files=(f"{name}/{files}", files),
        variable=f"{dataset.upper()}_OVERRIDE_PATH",
        source=f"https://github.com/evalplus/{dataset}plus_release/releases ({release})",
        licence=licence,
        right="returns what the canonical solution returns, on base and plus inputs (evalplus)",
        prompt="evalplus",
        max_new_tokens=768,
        hash="md5",
        known={digest: release},
    )(partial(function_problem, dataset=dataset))
