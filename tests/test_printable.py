import getpass
import json
import socket
from pathlib import Path

import pytest
import yaml
from planted import ASSIGNED, CORE, KINDS, SHAPED, TOKENS, seen
from refusals import refuses

from azr_population import versions
from azr_population.printable import HIDDEN, printable, redact, redact_known, shareable


def test_what_moves_the_cursor_or_turns_the_text_is_written_out():
    assert printable("a\x1b[2J\u202eb\r\n\tc\x9b") == "a\\x1b[2J\\u202eb\\r\n\tc\\x9b"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "carry",
    [str, json.dumps, repr, lambda text: yaml.safe_dump({"a": [text]}), lambda text: f"({text})"],
    ids=["text", "JSON", "Python", "YAML", "brackets"],
)
def test_secrets_are_hidden_in_text(kind, carry):
    text = carry(KINDS[kind])
    assert seen(text)
    for hide in (redact, shareable):
        shown = hide(text)
        assert HIDDEN in shown and not seen(shown), shown


def test_what_stands_around_a_secret_stays():
    for secret in TOKENS.values():
        shown = redact(f"base {secret} end")
        assert shown.startswith("base ") and shown.endswith(" end")
    assert redact(f"dapi{'0123abcd' * 4}") == HIDDEN
    assert redact(redact(ASSIGNED["JSON"])) == f'{{"api_key": {HIDDEN}, "a": 1}}'
    command = ["train", "--token", CORE, "run.steps=4", f"a.token={CORE}", "--out", "x"]
    shown = ["train", "--token", HIDDEN, "run.steps=4", f"a.token={HIDDEN}", "--out", "x"]
    assert redact(command) == shown


@pytest.mark.parametrize(
    "text",
    [
        "engine.generate_tokens=393216 max_answer_tokens: 128, tokens 12",
        "A step writes some ten thousand tokens: a minute or two; max_answer_tokens: int = 5",
        "run_20261128T091732Z in /nix/store/0c2zqk7fkr6kyvhvhl5cdbz1ysbnyzfs-python3/bin",
        "monkey=1 tokenizer=chat keyboard: x",
        "skip_this_long_function_name and npm_config_registry_name",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "https://example.org:8000/a/b?x=1#y",
        "teacher_0 beats student_1 by 3/4; a basic rule; login here",
        "def f(password):\n    return password[::-1]",
        "run.steps cannot be read as KEY=VALUE; data.prompt_key=prompt reward_fn_key: data_source",
        "Qwen2_5VLForConditionalGeneration DeepSeek-R1-Distill-Qwen-32B Llama-3_3-Nemotron-49B-v1",
        "sha256-0123456789abcdef0123456789abcdef refs-0123456789abcdef0123456789abcdef01234567",
        "teacher_0_generation_12_of_student_10 step_00000000000000000001",
        "123e4567-e89b-12d3-a456-426614174000",
        "run.dir=sweep3lr0p0001bs64seed17wd0 base.path=Qwen2p5Coder7BInstructAWQ4bit",
        f"check2sum3OfDigitsInListAndReturn {'0123ABCD' * 5}",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_what_is_known_is_told_from_what_looks_like_it():
    for kind, text in KINDS.items():
        assert (redact_known(text) == text) == (kind in SHAPED), kind


@pytest.mark.parametrize(
    "name",
    [
        "runs/exp-DeepSeekR1DistillQwen7B",
        "runs/coder_Qwen25Coder7BInstruct2025",
        "bases/my_SmolLM2135MInstructQ4K",
        "runs/r8_lr1e-4_seed3_bs64_wd0",
        "hf_Qwen2.5-Coder-7B-Instruct",
        "runs/sk-learn-baseline-2025-run3",
        "glm-4-9b-chat-2025-06-12",
    ],
)
def test_names_of_folders_are_not_known_secrets(name):
    assert redact_known({"run": {"dir": name}}) == {"run": {"dir": name}}


def test_a_known_prefix_is_known_with_separators_behind_it():
    for token in (f"glpat-{CORE[:6]}_{CORE[:6]}-{CORE[:6]}", f"sk-ant-api03-a_b-{CORE}-c"):
        assert redact_known(f"runs/{token}").endswith(HIDDEN)


def test_values_of_variables_are_known_except_ones_own_words(monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "students")
    monkeypatch.setenv("OTHER_TOKEN", "hunter2hunter2")
    settings = {"students": "my_students", "dir": "runs/hunter2hunter2"}
    hidden = {"students": "my_students", "dir": f"runs/{HIDDEN}"}
    assert redact_known(settings, {"students"}) == hidden
    assert redact_known("students") == HIDDEN


def test_values_of_variables_that_sound_secret_are_hidden_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_KEY", "correct horse battery")
    monkeypatch.setenv("RUN_NAME", "an ordinary name")
    monkeypatch.setenv("SHORT_TOKEN", "ab")
    monkeypatch.setenv("OLDPWD", "/home/an ordinary name")
    text = "it said correct horse battery, ab and an ordinary name"
    assert redact({"a": [text]}) == {"a": [f"it said {HIDDEN}, ab and an ordinary name"]}
    assert shareable(text) == f"it said {HIDDEN}, ab and an ordinary name"
    assert redact("in /home/an ordinary name/runs") == "in /home/an ordinary name/runs"


def test_values_of_secret_keys_are_hidden_and_of_others_are_not():
    settings = {
        "logger": {"wandb_api_key": "abc", "names": ["wandb"], "token": None},
        "engine": {"max_answer_tokens": 128, "seed": 1.5, "on": True},
        "secrets": {"a": ["x", 3]},
    }
    assert shareable(settings) == {
        "logger": {"wandb_api_key": HIDDEN, "names": ["wandb"], "token": None},
        "engine": {"max_answer_tokens": 128, "seed": 1.5, "on": True},
        "secrets": {"a": [HIDDEN, 3]},
    }
    shown = shareable("train logger.api_key=abc HF_TOKEN=def run.steps=4 --password ghi tokens=5")
    hidden = f"logger.api_key={HIDDEN} HF_TOKEN={HIDDEN}"
    assert shown == f"train {hidden} run.steps=4 --password {HIDDEN} tokens=5"


def test_paths_and_names_of_this_machine_are_left_out(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    assert shareable("run.dir=/home/somebody/runs/a and ~/b, C:\\Users\\x\\c") == (
        "run.dir=a and b, c"
    )
    assert shareable(Path("/models/coder")) == "coder"
    for home in ("/home/alice", "/Users/alice", "C:\\Users\\alice"):
        assert shareable(f"at {home}") == "at ~"
    assert shareable("PATH=/usr/bin:/home/alice/bin file:///home/alice/a") == "PATH=bin:bin a"
    assert shareable("\\\\server\\alice\\a b") == "a b"
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu17.lab.example")
    assert shareable("on gpu17.lab.example and gpu17, gpu170") == "on host and host, gpu170"
    assert shareable("by somebody: 3/4, owner/base, https://example.org/a/b") == (
        "by user: 3/4, owner/base, https://example.org/a/b"
    )


def test_what_is_not_installed_has_no_version():
    assert versions.installed("pytest")
    assert versions.installed("no-such-package") is None


def test_the_commit_is_that_of_the_package_and_of_no_other_checkout(tmp_path, monkeypatch):
    commit = versions.commit()
    assert commit is None or len(commit.removesuffix("+changes")) == 40
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "versions.py"))
    assert versions.commit() is None


def test_a_run_of_an_older_version_names_that_version(tmp_path):
    import json

    from azr_population.runs import RunDirectory

    (tmp_path / "config.yaml").write_text("exam: {every: 5}\n")
    (tmp_path / "environment.json").write_text(
        json.dumps({"packages": {"azr-population": "0.1.0"}})
    )
    with refuses("0.1.0"):
        RunDirectory(tmp_path).config()
