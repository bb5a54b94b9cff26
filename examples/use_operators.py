"""Evolution operators from Python, on any PEFT folders of one base.

    python examples/use_operators.py runs/demo/members/student_0 runs/demo/members/student_1 child

Makes a child by `svd_subspace` (the first singular components of one parent's update, the rest of
the other's), mutates it a little, and writes it as a PEFT folder.
"""

import sys

import torch

from azr_population.weights.breeding import get_operator
from azr_population.weights.peft_folder import load_adapter, read_config, save_adapter

if len(sys.argv) != 4:
    sys.exit("usage: python examples/use_operators.py FIRST_PARENT SECOND_PARENT CHILD")
first, second, out = sys.argv[1:]
generator = torch.Generator().manual_seed(1)
parents = [load_adapter(first), load_adapter(second)]
child = get_operator("svd_subspace")(parents, generator, k=3)
child = get_operator("svd_structured")([child], generator, eps=0.05)
save_adapter(child, out, str(read_config(first)["base_model_name_or_path"]))
print(f"child of {first} and {second} in {out}")
