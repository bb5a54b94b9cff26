import torch
from transformers import AutoModelForCausalLM

from azr_population.bases.nano import nano_base_path
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.engines.base_model import load_tokenizer


def test_the_shipped_folder_loads_is_small_and_can_add():
    folder = nano_base_path()
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 6 * 1024**2
    tokenizer = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.config.model_type == "qwen2"
    assert model.config.eos_token_id == tokenizer.eos_token_id == 1
    assert 1_000_000 <= model.num_parameters() <= 2_900_000
    task = Task(TaskType.CODE_O, "def f(a):\n    return a[::-1]", ("[1, 2, 3]",), ("[3, 2, 1]",))
    inputs = tokenizer(NanoFormat().solve_prompt(task), return_tensors="pt")
    with torch.inference_mode():
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=20)[0]
    answer = tokenizer.decode(ids[inputs.input_ids.shape[1] :], skip_special_tokens=True)
    assert answer == "[3, 2, 1]"
