"""AZR's side of a step without AZR: what its reward manager, executor and workers do, in small.

It serves what another host has played: the completions, which of them are tasks, which are solved.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from types import ModuleType

import numpy as np
import torch
from fake_group import FakeGroup
from fakes import Bytes

from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import TaskType, shown
from azr_population.domains.known import find_domain
from azr_population.engines.engine import Completion
from azr_population.hosts.azr.batches import COMPLETION
from azr_population.hosts.azr.settings import DOMAIN, run_config
from azr_population.method.population import Population


class Batch:
    """What the plugin reads of veRL's DataProto: `batch` and `non_tensor_batch`."""

    def __init__(self, slots, written):
        width = max(map(len, written), default=1) + 1
        self.batch = {
            "responses": torch.zeros(len(written), width, dtype=torch.long),
            "attention_mask": torch.ones(len(written), 2 + width, dtype=torch.long),
        }
        for row, ids in enumerate(written):
            self.batch["responses"][row, : len(ids)] = torch.tensor(ids)
            self.batch["attention_mask"][row, 2 + len(ids) :] = 0
        self.batch["response_mask"] = self.batch["attention_mask"][:, 2:]
        rows = [
            Completion(slot, (), tuple(ids), (), True)
            for slot, ids in zip(slots, written, strict=True)
        ]
        columns = {"member": slots, COMPLETION: rows}
        self.non_tensor_batch = {k: np.array(v, dtype=object) for k, v in columns.items()}

    def with_rewards(self, rewards):
        """As after AZR's reward manager: each row's reward on its last token."""
        self.batch["token_level_rewards"] = torch.zeros(self.batch["responses"].shape)
        for row, (reward, mask) in enumerate(
            zip(rewards, self.batch["response_mask"], strict=True)
        ):
            self.batch["token_level_rewards"][row, int(mask.sum()) - 1] = reward
        return self

    def __iter__(self):
        """A row stands for its place, by which `Manager` knows it."""
        return iter(range(len(self.batch["responses"])))


class Prompts:
    """Prompts of one token each, the place of the proposal that they ask about."""

    def __init__(self, places):
        ids = torch.tensor(places).unsqueeze(1)
        self.batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        self.meta_info = {}


class Manager:
    """AZR's `CodeIORewardManager`, as far as proposals go: same calls in the same order."""

    reward_fn_extraction_type, boxed_retry = "answer", False

    def __init__(self, rows):
        self._rows = rows
        self.tokenizer = Bytes()

    def extract_input_output(self, text, return_input, return_output):
        """The answer in a response; '' where there is none."""
        kind = TaskType.CODE_I if return_input else TaskType.CODE_O
        return ChatFormat().parse_answer(kind, text) or ""

    def _get_data_dict(self, item, kind, executor, words, uid, *rest):
        row = self._rows[item]
        if row.parsed is not None:
            executor.check_all(code=row.parsed.program)
        if row.task is None:
            return {"uid": uid, "code_validity": False, "format_score": 0.0}
        task = row.task
        answer = {"snippet": task.program, "message": task.message, "imports": list(task.imports)}
        if row.type == TaskType.CODE_F:
            answer |= {"inputs": list(task.inputs), "outputs": list(task.outputs)}
            answer |= {"hidden_inputs": task.inputs[shown(task) :]}
            answer |= {"hidden_outputs": task.outputs[shown(task) :]}
        else:
            answer |= {"input": task.inputs[0], "output": task.outputs[0]}
        return {"uid": uid, "code_validity": True, "format_score": 1.0, "answer": answer}

    def _get_problem_generator_rewards_and_valid_programs(self, **kwargs):
        valid = [one for one in kwargs["data_dicts"] if one["code_validity"]]
        places = [place for place, row in enumerate(self._rows) if row.task is not None]
        if not places:
            return defaultdict(lambda: {"accuracy": 0.0}), []
        places *= kwargs["n_samples"]
        output = kwargs["rollout_actor_wg"].generate_sequences(Prompts(places))
        for index, row in enumerate(self._rows[place] for place in places):
            text = bytes(int(i) for i in output.batch["responses"][index] if i).decode()
            answer, executor = valid[index % len(valid)]["answer"], kwargs["executor"]
            parsed = ChatFormat().parse_answer(row.type, text) or ""
            if row.type == TaskType.CODE_F:
                for given, wanted in zip(
                    answer["hidden_inputs"], answer["hidden_outputs"], strict=True
                ):
                    if parsed:
                        executor.eval_input_prediction(parsed, wanted, given)
            elif row.type == TaskType.CODE_I:
                executor.eval_input_prediction(answer["snippet"], answer["output"], parsed)
            else:
                executor.eval_output_prediction(answer["snippet"], answer["output"], parsed)
        return defaultdict(lambda: {"accuracy": 0.0}), []

    def __call__(self, data, **kwargs):
        dicts = [
            self._get_data_dict(index, kwargs["problem_type"], kwargs["executor"], [], str(index))
            for index in range(len(self._rows))
        ]
        rewards, programs = self._get_problem_generator_rewards_and_valid_programs(
            data_dicts=dicts, **kwargs
        )
        tensor = torch.zeros(data.batch["responses"].shape)
        for index, one in enumerate(dicts):
            accuracy = rewards[one["uid"]]["accuracy"]
            reward = -1.0 if not one["format_score"] else accuracy if accuracy > 0 else -0.5
            tensor[index, int(data.batch["response_mask"][index].sum()) - 1] = reward
        return tensor, {}, programs, []


class Executor:
    """AZR's executor, which knows the verdicts already."""

    def __init__(self, rows):
        self._scores = {}
        for row in rows:
            for answer in row.attempts:
                if row.task is None or answer.text is None:
                    continue
                for given, wanted in zip(row.task.inputs, row.task.outputs, strict=True):
                    program, asked = row.task.program, answer.text
                    if row.type == TaskType.CODE_F:
                        program, asked = answer.text, given
                    self._scores[program, wanted, asked] = float(answer.solved)

    def check_all(self, code):
        """Nobody looks at what it says."""
        return True, ""

    def eval_input_prediction(self, code, gold_output, agent_input, imports=()):
        """AZR's method, for code_i and code_f."""
        return self._scores.get((code, gold_output, agent_input), 0.0)

    def eval_output_prediction(self, code, gold_output, agent_output, imports=()):
        """AZR's method."""
        return self._scores.get((code, gold_output, agent_output), 0.0)


class StandInGroup(FakeGroup):
    """Writes what the matched students have written before."""

    def __init__(self, rows, samples):
        super().__init__(
            lambda prompt, sample: rows[prompt[0]].attempts[sample].completion.token_ids, samples
        )

    def output(self, prompts, written):
        return Batch([0] * len(written), written)


def batch_of(rows):
    """A batch of proposals."""
    return Batch([r.match.teacher.slot for r in rows], [r.completion.token_ids for r in rows])


def credited_batch(rows):
    """A batch of training rows of one phase and type, with what they are worth."""
    written = [row.sample.completion for row in rows]
    batch = Batch([each.slot for each in written], [each.token_ids for each in written])
    return batch.with_rewards([row.value for row in rows])


def install_parsers(monkeypatch):
    """AZR's two parsers of answers, under their names."""
    names = ("", ".rewards", ".rewards.code_reward", ".rewards.custom_evaluate")
    modules = {name: ModuleType(f"absolute_zero_reasoner{name}") for name in names}

    def parse_code_function(text):
        program = ChatFormat().parse_answer(TaskType.CODE_F, text)
        return program is not None, program or text

    modules[".rewards.code_reward"].parse_code_function = parse_code_function
    modules[".rewards.custom_evaluate"].extract_answer = lambda text, kind, boxed_retry: text
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"absolute_zero_reasoner{name}", module)


def population_of(settings):
    """The population that these settings describe, at AZR's learning rate of 1e-6."""
    return Population(run_config(settings, 1e-6, 2, ["code_o"]), find_domain(DOMAIN))
