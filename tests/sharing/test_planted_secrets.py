"""Made-up secrets of each kind, in all texts of a run; none is in what leaves it."""

import getpass
import json
import shutil
import socket
import sys

import pytest
import yaml
from planted import KINDS, SHAPED, seen

from azr_population.analysis.report import write_report
from azr_population.cli import main
from azr_population.config.load import load_config
from azr_population.errors import UserError
from azr_population.hosts import loggers
from azr_population.hosts.local import run as local_run
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import save_adapter

TEXTS = (".md", ".json", ".jsonl", ".yaml", ".toml", ".py")
LAYER = "model.layers.0.self_attn.q_proj"


@pytest.fixture
def planted(write_run, monkeypatch):
    """A run with each secret, a user's path and this machine's name in its configuration,
    environment, notes and births."""
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu17.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    texts = {**KINDS, "path": "at /home/somebody/runs on gpu17 by somebody", "mark": "\x1b[2J"}
    config = {
        "seed": 1,
        "population": {"name": "4t4s", "teachers": 4},
        "run": {"steps": 12},
        "base": {"path": "owner/base"},
        "notes": texts,
        **texts,
    }
    directory = write_run()
    folder = getattr(directory, "path", directory)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    environment = {"base": "/home/somebody/base", "platform": "Linux-gpu17.lab", **texts}
    (folder / "environment.json").write_text(json.dumps(environment))
    births = [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]
    with (folder / "lineage.jsonl").open("a") as file:
        for text in texts.values():
            file.write(json.dumps({**births[0], "operator": text, "options": {text: 1}}) + "\n")
    pair = Factors(*map(__import__("torch").ones, ((2, 4), (4, 2))))
    for name in ("teacher_0", "teacher_1"):
        member = Adapter(LoraSpec(2, 4.0, (LAYER,)), {LAYER: pair})
        save_adapter(member, folder / "members" / name, "owner/base", texts)
        file = folder / "members" / name / "adapter_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"auto_mapping": texts}))
        for beside in ("optimizer.pt", ".env"):
            (folder / "members" / name / beside).write_text(str(texts))
    return folder


def clean(text):
    names = [name for name in ("somebody", "gpu17", "/home/", "\x1b") if name in text]
    return not seen(text) and not names


def test_a_comparison_has_none_of_them(planted, tmp_path, capsys):
    arms = []
    for arm in ("one", "two"):
        for seed in (1, 2):
            run = shutil.copytree(planted, tmp_path / f"{arm}_{seed}")
            config = yaml.safe_load((run / "config.yaml").read_text()) | {"seed": seed}
            (run / "config.yaml").write_text(yaml.safe_dump(config))
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            for number, line in enumerate(lines):
                line["eval/greedy_mean"] = (number + seed + 3 * (arm == "two")) / 99
            (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            arms.append(f"{arm}={run}")
    assert main(["compare", *arms, "--out", str(tmp_path / "arms.html")]) == 0
    page, (out, err) = (tmp_path / "arms.html").read_text(), capsys.readouterr()
    assert not seen(page + out + err)
    for name in ("somebody", "gpu17", "/home/"):
        assert name not in page


def test_no_page_card_export_or_logger_has_them(planted, tmp_path, monkeypatch):
    assert clean(write_report(planted).read_text())
    for command, *more in (
        ("push", "teacher_0"),
        ("push", "teacher_0", "teacher_1"),
        ("export", "--to", "jsonl"),
        ("export", "--to", "verifiers"),
    ):
        out = tmp_path / "_".join((command, *more)).replace("/", "_")
        arguments = [command, str(planted), *more, "--out", str(out)]
        assert main(arguments) == 0, arguments
        files = [path for path in out.rglob("*") if path.suffix in TEXTS]
        assert files and all(clean(path.read_text()) for path in files)
        assert not {"optimizer.pt", ".env"} & {path.name for path in out.rglob("*")}
    told = {}
    monkeypatch.setattr(loggers._Tracker, "_open", lambda self, _: told.update(self._options))
    monkeypatch.setattr(loggers._Tracker, "name", "tracker", raising=False)
    loggers._Tracker(loggers.RunDirectory(planted), 0)
    assert told["config"]["seed"] == 1 and clean(json.dumps(told["config"]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in SHAPED])
def test_a_configuration_with_a_secret_is_refused_and_not_printed(kind, capsys, monkeypatch):
    value = KINDS[kind].replace("\\", "").replace("'", "").replace("\n", " ")
    for key in ("population.name", "nonsense"):
        assert main(["train", "--config", f"{key}='{value}'"]) == 2
        out, err = capsys.readouterr()
        assert not seen(out) and not seen(err) and err.count("\n") == 1


def test_what_the_environment_holds_is_not_looked_up(capsys, monkeypatch):
    monkeypatch.setenv("PLANTED", "pl4nted")
    for text in ("${oc.env:PLANTED}", "\\${oc.env:PLANTED}", "a${oc.env:PLANTED}", "${seed}"):
        with pytest.raises(UserError) as refused:
            load_config([f"population.name='{text}'"])
        assert refused.value.key == "population.name" and "pl4nted" not in str(refused.value)


def test_a_command_is_stored_without_its_secrets(small_run, monkeypatch, tmp_path):
    typed = ["train", "--token", "abc", *KINDS.values()]
    monkeypatch.setattr(sys, "argv", typed)
    record = local_run.redact([*sys.argv])
    assert not seen(json.dumps(record)) and record[2] == "(hidden)"
