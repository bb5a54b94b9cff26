"""Problems of our own in the formats of the benchmarks, and adapters on the nano base."""

import json

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import save_adapter


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


HUMANEVAL_ROWS = [
    {
        "task_id": "HumanEval/900",
        "prompt": 'def double(x):\n    """Twice x.\n    >>> double(2)\n    4\n    """\n',
        "entry_point": "double",
        "canonical_solution": "    return 2 * x\n",
        "contract": "",
        "base_input": [[2], [0]],
        "plus_input": [[-3], [10**30], [1.5]],
        "atol": 0,
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    {
        "task_id": "HumanEval/901",
        "prompt": 'def halves(xs):\n    """Each x divided by two."""\n',
        "entry_point": "halves",
        "canonical_solution": "    return [x / 2 for x in xs]\n",
        "contract": "",
        "base_input": [[[1, 2]]],
        "plus_input": [[[]], [[1e9, 3]]],
        "atol": 0,
        "test": "def check(candidate):\n    assert candidate([1, 2]) == [0.5, 1.0]\n",
    },
]

CONTEST_ROWS = [
    {
        "question_title": "Sum",
        "question_content": "Read n, then n numbers on a line. Print their sum.",
        "platform": "atcoder",
        "question_id": "own_sum",
        "starter_code": "",
        "public_test_cases": json.dumps(
            [{"input": "3\n1 2 3\n", "output": "6\n", "testtype": "stdin"}]
        ),
        "private_test_cases": json.dumps(
            [
                {"input": f"2\n{n} {n}\n", "output": f"{2 * n}\n", "testtype": "stdin"}
                for n in range(12)
            ]
        ),
        "metadata": "{}",
    },
    {
        "question_title": "Pairs",
        "question_content": "Return the pairs of nums that add up to target, sorted.",
        "platform": "leetcode",
        "question_id": "own_pairs",
        "starter_code": "class Solution:\n    def pairs(self, nums: list[int], target: int):\n",
        "public_test_cases": json.dumps(
            [{"input": "[1, 2, 3]\n4", "output": "[[1, 3]]", "testtype": "functional"}]
        ),
        "private_test_cases": json.dumps(
            [{"input": "[]\n4", "output": "[]", "testtype": "functional"}]
        ),
        "metadata": json.dumps({"func_name": "pairs"}),
    },
]


def adapter(folder, width=128, seed=0, rank=4, scale=1.0):
    random = torch.Generator().manual_seed(seed)
    A, B = (torch.randn(shape, generator=random) for shape in ((rank, width), (width, rank)))
    layer = "model.layers.0.self_attn.q_proj"
    new_adapter = Adapter(LoraSpec(rank, 2.0 * rank, ("q_proj",)), {layer: Factors(A, scale * B)})
    save_adapter(new_adapter, folder, str(nano_base_path()))
    return folder
