"""Evolution operators from Python, on any two PEFT folders of one base, of rank 2 or more.

    python examples/use_operators.py runs/demo/members/student_0 runs/demo/members/student_1 child

Makes a child by `svd_subspace` (the first singular components of one parent's update, a random
number of them, and the rest of the other's), mutates it a little, and writes it as a PEFT folder.
"""

import sys

import torch

from azr_population.errors import UserError
from azr_population.weights.breeding import get_operator
from azr_population.weights.peft_folder import load_adapter, read_config, save_adapter

if len(sys.argv) != 4:
    sys.exit("usage: python examples/use_operators.py FIRST_PARENT SECOND_PARENT CHILD")
first, second, out = sys.argv[1:]
generator = torch.Generator().manual_seed(1)
try:
    parents = [load_adapter(first), load_adapter(second)]
    child = get_operator("svd_subspace")(parents, generator)
    child = get_operator("svd_structured")([child], generator, eps=0.05)
    save_adapter(child, out, str(read_config(first)["base_model_name_or_path"]))
except UserError as error:
    sys.exit(str(error))
print(f"child of {first} and {second} in {out}")
