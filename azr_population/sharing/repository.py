"""Members of a run as a repository for the Hub: weights, configuration and a card of its own."""

import json
import re
import shutil
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from azr_population.errors import UserError, first_line
from azr_population.files import check_name, read_json, read_text, replacing_folder
from azr_population.runs.directory import RunDirectory
from azr_population.weights.model_card import NANO
from azr_population.weights.peft_folder import CONFIG_FILE, WEIGHTS_FILE

ON_THE_HUB = re.compile(r"\w[\w.-]*/[\w.-]+")
"""OWNER/NAME."""


def write_repository(
    folder: Path,
    run: RunDirectory,
    members: Sequence[str],
    base: str | None = None,
    license: str | None = None,
) -> None:
    """Writes what would be pushed: one member's files at the top of `folder`, of several in a
    folder each. Paths of this machine are left out of configuration and card. Raises UserError: the
    run has no such member, or nobody knows the base's name on the Hub."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(folder) as place:
        place.mkdir()
        alone = len(members) == 1
        for name in members:
            target = place if alone else place / check_name(name)
            target.mkdir(exist_ok=True)
            _write_member(target, run, name, base, license)
        if not alone:
            listed = "".join(f"- [{name}]({name})\n" for name in members)
            header = _header(None, license)
            (place / "README.md").write_text(
                f"{header}\nMembers of one population, a PEFT adapter each:\n\n{listed}",
                encoding="utf-8",
            )


def upload(folder: Path, repo: str, private: bool = False) -> str:
    """Pushes the folder in one commit; returns the commit's address. Raises UserError: the Hub
    refuses or cannot be reached, in one line."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    # huggingface_hub 1 speaks through httpx, 0 through requests, whose errors are OSErrors.
    httpx = import_module("httpx") if find_spec("httpx") else None
    unreachable = (OSError, httpx.TransportError) if httpx else (OSError,)
    hub = HfApi()
    try:
        hub.create_repo(repo, private=private, exist_ok=True)
        done = hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="Add members")
    except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError, *unreachable) as error:
        raise UserError(
            f"--repo {repo} cannot be pushed: {first_line(error)}; `hf auth login` gives this "
            "machine a token, --to FOLDER writes the files without the Hub"
        ) from error
    return str(done.commit_url)


def _write_member(
    target: Path, run: RunDirectory, name: str, base: str | None, license: str | None
) -> None:
    source = run.member(name)
    config = read_json(source / CONFIG_FILE)
    base = _base(str(config.get("base_model_name_or_path") or ""), base)
    config["base_model_name_or_path"] = base or "nano"
    (target / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(source / WEIGHTS_FILE, target / WEIGHTS_FILE)
    _, _, text = read_text(source / "README.md").removeprefix("---\n").partition("---\n")
    exam = _last_exam(run, name)
    told = f"- exam: {exam['mean']:.1%} at step {exam['step']}\n" if exam else ""
    text = re.sub(r"(?m)^(- run: ).*\n", rf"\g<1>{run.path.resolve().name}\n{told}", text, count=1)
    if base:
        text = re.sub(r"(?m)^base = .*$", f"base = {json.dumps(base)}", text, count=1)
    (target / "README.md").write_text(f"{_header(base, license)}{text}", encoding="utf-8")


def _base(path: str, given: str | None) -> str | None:
    """The base's name on the Hub; None for the embedded one, which is in this package only."""
    if given is not None and not ON_THE_HUB.fullmatch(given):
        raise UserError(f"--base {given} is no name on the Hub; give OWNER/NAME")
    if given or path.endswith(NANO):
        return given
    if ON_THE_HUB.fullmatch(path) and not Path(path).exists():
        return path
    raise UserError("the members' base is a folder of this machine; name it by --base OWNER/NAME")


def _header(base: str | None, license: str | None) -> str:
    fields = {"base_model": base, "license": license, "library_name": "peft"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in fields.items() if value]
    return "\n".join(["---", *lines, "tags: [lora, population-based-training]", "---", ""])


def _last_exam(run: RunDirectory, name: str) -> dict[str, Any] | None:
    """The member's mean at the last sitting of the run's exam, None where it never sat."""
    last: dict[str, Any] | None = None
    for step in run.metrics():
        score = ((step.get("exam") or {}).get("members") or {}).get(name)
        if isinstance(score, (int, float)):
            last = {"step": step["step"], "mean": float(score)}
    return last
