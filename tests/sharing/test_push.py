"""`azr-population push`: what is written, and what a stand-in for the Hub is sent."""

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest
import torch
import yaml
from fakes import http_server

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.eval.members import find_members
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import load_adapter, save_adapter

LAYER = "model.layers.0.self_attn.q_proj"


@pytest.fixture
def members(run):
    """The run with two members on a base that is called as on the Hub."""
    for number in (0, 1):
        pair = Factors(torch.ones(2, 4), torch.full((4, 2), float(number)))
        adapter = Adapter(LoraSpec(2, 4.0, (LAYER,)), {LAYER: pair})
        facts = {"name": f"teacher_{number}, after step 1", "run": "somebody/runs/run"}
        save_adapter(adapter, run.member(f"teacher_{number}"), "owner/base", facts)
    run.append("metrics", [{"step": 2, "teacher_0/eval/greedy": 0.25}])
    scores = {1: [0.0, 0.0, None, 0.0, 0.0], 2: [1.0, 0.0, None, 0.0, 0.0]}
    lines = [{"step": n, "member": "teacher_0", "greedy": line} for n, line in scores.items()]
    run.append("evals", lines)
    return run


class Hub:
    """Answers what one commit of small files needs, and keeps what it was sent."""

    def __init__(self):
        self.requests, self.refuses, self.address = [], False, ""

    def __call__(self, path, headers, body):
        self.requests.append((path, headers.get("Authorization"), body))
        status, content = self.answer(path, body)
        return status, json.dumps(content).encode()

    def answer(self, path, body):
        if self.refuses:
            return 403, {"error": "no right to write"}
        if path.endswith("/preupload/main"):
            files = json.loads(body)["files"]
            saved = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return 200, {"files": [{"path": f["path"], **saved} for f in files]}
        url = f"{self.address}/me/mine"
        done = {"url": url, "commitUrl": f"{url}/commit/1", "commitOid": "1", "name": "x"}
        return 200, {**done, "id": "me/mine"}


@pytest.fixture
def hub():
    stand_in = Hub()
    with http_server(stand_in) as stand_in.address:
        yield stand_in


def push(hub, *arguments, **others):
    """The command as a process of its own: huggingface_hub keeps its address, its sessions and
    whether it is offline from its first use on, and a machine's proxy must not be asked."""
    machine = {
        key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")
    }
    settings = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_test", "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "azr_population.cli", "push", *arguments],
        env={**machine, **settings, "NO_PROXY": "*", **others},
        capture_output=True,
        text=True,
    )


def test_a_member_is_pushed_with_its_card(members, hub):
    done = push(hub, str(members.path), "teacher_0", "--repo", "me/mine", "--license", "mit")
    assert done.returncode == 0, done.stderr
    assert "/me/mine/commit/1" in done.stdout
    path, key, body = next(
        request for request in hub.requests if request[0].endswith("/commit/main")
    )
    assert path == "/api/models/me/mine/commit/main" and key == "Bearer hf_test"
    lines = [json.loads(line) for line in body.splitlines()]
    files = {
        line["value"]["path"]: b64decode(line["value"]["content"])
        for line in lines
        if line["key"] == "file"
    }
    assert set(files) == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
    card = files["README.md"].decode()
    header = yaml.safe_load(card.split("---\n")[1])
    assert (header["base_model"], header["license"]) == ("owner/base", "mit")
    assert "- eval: 25.0% [4.6, 69.9] of 4 held-out tasks at step 2; 0.0% [0.0, 49.0] at" in card
    assert "- run: run\n" in card and "somebody" not in card


def test_a_card_has_no_score_of_who_had_the_name_before(tmp_path):
    run = Path(__file__).parents[2] / "examples" / "runs" / "4t4s"
    assert main(["push", str(run), "student_0", "--out", str(tmp_path / "out")]) == 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert "of 60 held-out tasks at step 20\n" in card and "student_3) at step 10" in card
    # Born after the last eval it has no score.
    young = shutil.copytree(run, tmp_path / "young")
    lines = (young / "evals.jsonl").read_text().splitlines(keepends=True)
    (young / "evals.jsonl").write_text("".join(x for x in lines if '"step":20' not in x))
    assert main(["push", str(young), "student_0", "--out", str(tmp_path / "out2")]) == 0
    assert "held-out tasks" not in (tmp_path / "out2" / "README.md").read_text()


def test_a_card_is_of_the_weights_that_are_pushed(members, tmp_path):
    """A run that was killed has records behind its last checkpoint."""
    (members.checkpoints / "step_2").mkdir()
    members.append("metrics", [{"step": 3, "teacher_0/generation": 1, "teacher_0/mu": 29.0}])
    lineage = {"step": 3, "child": "teacher_0", "parents": ["teacher_1"], "operator": "dare"}
    members.append("lineage", [{**lineage, "generation": 1}])
    members.append("evals", [{"step": 3, "member": "teacher_0", "generation": 1, "greedy": [1.0]}])
    assert main(["push", str(members.path), "teacher_0", "--out", str(tmp_path / "out")]) == 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert "held-out tasks at step 2;" in card
    assert not any(word in card for word in ("generation", "29.00", "dare", "at step 3"))


def test_a_hub_that_refuses_or_is_gone_is_one_line(members, hub):
    hub.refuses = True
    asked = (str(members.path), "teacher_0", "--repo", "me/mine")
    refused = push(hub, *asked)
    assert refused.returncode == 2
    assert "--repo me/mine" in refused.stderr and "403" in refused.stderr, refused.stderr
    assert refused.stderr.count("\n") == 1
    hub.address = "http://127.0.0.1:9"  # nobody listens
    for settings in ({}, {"HF_TOKEN": ""}):
        gone = push(hub, *asked, **settings)
        assert gone.returncode == 2 and gone.stderr.count("\n") == 1
        assert len(gone.stderr) < 200, gone.stderr


def test_who_has_no_token_is_told_how_to_log_in(members, monkeypatch, capsys):
    """The words behind `token:` were hidden as if they were one."""
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    push = ["push", str(members.path), "teacher_0", "--repo", "me/it", "--license", "apache-2.0"]
    assert main(push) == 2
    assert "`hf auth login` first, or set HF_TOKEN; --out FOLDER" in capsys.readouterr().err


def test_what_would_be_pushed_loads_as_it_is(members, tmp_path):
    out = tmp_path / "both"
    assert main(["push", str(members.path), "teacher_0", "teacher_1", "--out", str(out)]) == 0
    assert load_adapter(out / "teacher_1").factors[LAYER].B.tolist() == [[1.0, 1.0]] * 4
    config = json.loads((out / "teacher_0" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "owner/base"
    assert "[teacher_1](teacher_1)" in (out / "README.md").read_text()


def edit_config(members, name="teacher_0", **fields):
    file = members.member(name) / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_a_base_that_only_this_machine_has_needs_its_name(members, tmp_path, capsys):
    edit_config(members, base_model_name_or_path=str(tmp_path))
    asked = ["push", str(members.path), "teacher_0", "--out", str(tmp_path / "out")]
    assert main(asked) == 2
    assert "--base OWNER/NAME" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert main([*asked, "--base", "somewhere"]) == 2
    assert main([*asked, "--base", "a/b"]) == 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert "base_model: a/b" in card and str(tmp_path) not in card


def test_the_embedded_base_is_named_and_not_linked(members, tmp_path):
    edit_config(members, base_model_name_or_path=str(nano_base_path()))
    out = tmp_path / "out"
    assert main(["push", str(members.path), "teacher_0", "--out", str(out)]) == 0
    assert "base_model:" not in (out / "README.md").read_text()
    assert (
        json.loads((out / "adapter_config.json").read_text())["base_model_name_or_path"] == "nano"
    )
    # It is opened where it is pulled, and bred with one of another installation.
    assert find_members(out)[0].base == Path(nano_base_path())
    parents = [str(out), str(members.member("teacher_1"))]
    edit_config(members, name="teacher_1", base_model_name_or_path="/elsewhere/nano/weights")
    assert main(["evolve", "dare", *parents, "--out", str(tmp_path / "child")]) == 0


def test_a_member_s_whole_benchmarks_are_eval_results(members, tmp_path, capsys):
    about = {"prompt": "cot", "max_tokens": 1024, "data": "AZR a82124e (9f098df7ff45)"}
    benchmarks = [
        {"name": "gsm8k", "title": "GSM8K", "limit": None, "hub": "openai/gsm8k", **about},
        {"name": "math500", "title": "MATH-500", "limit": 20, "hub": "x/math", **about},
    ]
    cells = {"GSM8K": {"value": 0.12345}, "MATH-500": {"value": 0.5}}
    lines = [{"model": "teacher_0", "k": 1, "role": "model", "cells": cells}]
    figures = {"benchmarks": benchmarks, "lines": lines, "samples": 1, "temperature": 0.0}
    (members.path / "evaluation").mkdir()
    (members.path / "evaluation/figures.json").write_text(json.dumps(figures))
    for name in ("teacher_0", "teacher_1"):
        assert main(["push", str(members.path), name, "--out", str(tmp_path / name)]) == 0
    (file,) = (tmp_path / "teacher_0/.eval_results").iterdir()
    (entry,) = yaml.safe_load(file.read_text())
    assert (file.name, entry["value"]) == ("gsm8k.yaml", 12.35)
    assert entry["dataset"] == {"id": "openai/gsm8k", "task_id": "gsm8k"}
    assert not (tmp_path / "teacher_1/.eval_results").exists()
    # They were of the members before the run went on.
    (members.path / "evaluation/figures.json").write_text(json.dumps({"step": 1, **figures}))
    assert main(["push", str(members.path), "teacher_0", "--out", str(tmp_path / "late")]) == 2
    assert "figures of step 1, and members of step 2: ask these" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["adapter_model.safetensors", "README.md", "", "password"])
def test_no_link_is_followed_and_only_weights_are_pushed(members, tmp_path, what):
    elsewhere, member = tmp_path / "elsewhere", members.member("teacher_0")
    if what == "password":
        (member / "adapter_model.safetensors").write_text("my password")
    else:
        (member / what).rename(elsewhere)
        (member / what).symlink_to(elsewhere)
    assert main(["push", str(members.path), "teacher_0", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_names_are_checked_before_the_work(members, tmp_path):
    for name in ("teacher_9", "../x"):
        assert main(["push", str(members.path), name, "--out", str(tmp_path / "out")]) == 2
    assert main(["push", str(members.path), "--out", str(tmp_path / "out")]) == 2
    assert main(["push", str(members.path / "teacher_0"), "--out", str(tmp_path / "alone")]) == 0
    assert (tmp_path / "alone/adapter_config.json").is_file()
    assert main(["push", str(members.path), "teacher_0", "--repo", "no name"]) == 2
    for name in ("class", "json", "3d"):
        out = str(tmp_path / name)
        assert main(["export", str(members.path), "--to", "verifiers", "--out", out]) == 2
        assert not (tmp_path / name).exists()
