"""A member of a run in plain transformers and PEFT.

    python examples/load_member.py runs/demo/members/teacher_0

Asks a teacher on the nano base for five tasks and prints them.
"""

import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from azr_population.bases.nano import nano_base_path

if len(sys.argv) != 2:
    sys.exit("usage: python examples/load_member.py MEMBER")
base = nano_base_path()
tokenizer = PreTrainedTokenizerFast.from_pretrained(base)
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), sys.argv[1])
torch.manual_seed(1)
prompts = tokenizer(["<PO>"] * 5, return_tensors="pt", add_special_tokens=False)
for tokens in model.generate(**prompts, do_sample=True, max_new_tokens=160):
    program, _, arguments = tokenizer.decode(tokens[1:]).partition("<in>")
    print(f"{program}\n>>> f({arguments.split('<eos>')[0]})\n")
