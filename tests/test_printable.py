import getpass
from pathlib import Path

import pytest
from refusals import refuses

from azr_population import versions
from azr_population.printable import HIDDEN, printable, shareable


def test_what_moves_the_cursor_or_turns_the_text_is_written_out():
    assert printable("a\x1b[2J\u202eb\r\n\tc\x9b") == "a\\x1b[2J\\u202eb\\r\n\tc\\x9b"


@pytest.mark.parametrize(
    "secret",
    [
        "hf_" + "aB3" * 10,
        "sk-proj-" + "aB3" * 10,
        "ghp_" + "aB3" * 12,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "https://me:pa55word@example.org/x",
    ],
)
def test_what_looks_like_a_token_is_hidden(secret):
    shown = shareable(f"base {secret} end")
    assert HIDDEN in shown and shown.startswith("base ") and shown.endswith(" end")
    assert "aB3aB3" not in shown and "pa55word" not in shown and "c2lnbmF0dXJl" not in shown


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
