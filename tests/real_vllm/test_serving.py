"""The line of docs/serving.md is what vLLM's own parser takes."""

import re
import shlex
from pathlib import Path

import needs


def test_vllm_takes_the_printed_line():
    cli = needs.module("vllm.entrypoints.openai.cli_args", "vllm")
    utils = needs.module("vllm.utils", "vllm")
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    (line,) = re.findall(r"^    vllm serve (.*)$", page, re.MULTILINE)
    parser = cli.make_arg_parser(utils.FlexibleArgumentParser())
    parser.add_argument("model_tag")
    arguments = parser.parse_args(shlex.split(line))
    cli.validate_parsed_serve_args(arguments)
    assert arguments.model_tag == "BASE" and arguments.enable_lora
    assert arguments.max_lora_rank == 16
    assert {module.name: module.path for module in arguments.lora_modules} == {
        name: f"runs/mine/members/{name}" for name in ("teacher_0", "student_0")
    }
