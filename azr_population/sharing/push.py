"""Members of a run to the Hugging Face Hub, or to a folder: weights, configuration, a card."""

import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import yaml

from azr_population.analysis.statistics import Estimate, interval, interval_text
from azr_population.errors import UserError, first_line
from azr_population.files import refuse_unplain, replacing_folder
from azr_population.printable import card_line, print_lines
from azr_population.reading.run_data import FIGURES, RunData
from azr_population.runs.directory import split_address
from azr_population.runs.records import metrics_of_members
from azr_population.weights.model_card import HUB_NAME, is_nano
from azr_population.weights.peft_folder import load_adapter, read_config, save_adapter


def push(
    address: str,
    members: Sequence[str],
    repo: str,
    out: Path | None = None,
    base: str | None = None,
    license: str | None = None,
) -> None:
    """Pushes members to `repo`, or writes to the folder `out` what would be pushed: those named in
    the run at `address`, or the one of RUN/MEMBER. Raises UserError: there is no such run or
    member, the folder exists, the base has no name on the Hub, or the Hub refuses or cannot be
    reached."""
    directory, member = split_address(address)
    run = RunData(directory.path)
    if not (members := [member, *members] if member else members):
        raise UserError(f"name one of the members of {run.path}: RUN/MEMBER, or RUN MEMBER...")
    if out and out.exists():
        raise UserError(f"--out {out} is there already; name a new folder")
    if not out and not HUB_NAME.fullmatch(repo):
        raise UserError(f"--repo {repo} is not a name on the Hub; give OWNER/NAME")
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or Path(temporary) / "repository"
        write_repository(folder, run, members, base, license)
        print_lines(f"{out}: what would be pushed" if out else upload(folder, repo))


def write_repository(
    folder: Path,
    run: RunData,
    members: Sequence[str],
    base: str | None = None,
    license: str | None = None,
) -> None:
    """Writes what would be pushed: one member's files at the top of `folder`, of several in a
    folder each. One member alone has its benchmarks in `.eval_results/`. Paths of this machine are
    left out of configuration and card. Raises UserError: the run has no such member, or the base's
    name on the Hub is unknown."""
    members, directory = list(dict.fromkeys(members)), run.directory
    for name in members:
        if not directory.member(name).is_dir():
            raise UserError(f"{run.path} has no member {name}")
    # What a link leads to is not a member.
    refuse_unplain(run.path, below=(directory.members.name,))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(folder) as partial:
        for name in members:
            source = directory.member(name)
            target = partial / name if len(members) > 1 else partial
            public = _base(str(read_config(source).get("base_model_name_or_path") or ""), base)
            # Loaded with all checks and written anew: no file is copied.
            save_adapter(load_adapter(source), target, public or "nano", _facts(run, name))
            _set_header(target / "README.md", public, license)
        if len(members) == 1:
            _write_eval_results(run, members[0], partial)
            return
        listed = "".join(f"- [{name}]({name})\n" for name in members)
        text = f"---\n---\n\nMembers of one population, a PEFT adapter each:\n\n{listed}"
        (partial / "README.md").write_text(text, encoding="utf-8")
        _set_header(partial / "README.md", None, license)


def upload(folder: Path, repo: str) -> str:
    """Pushes the folder in one commit; returns the commit's address. Raises UserError: the Hub
    refuses or cannot be reached, in one line."""
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    hub, files = HfApi(), "; --out FOLDER writes the files without the Hub"
    # huggingface_hub 2 speaks through httpx2, 1 through httpx, 0 through requests (OSErrors).
    clients = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    refused = HfHubHTTPError, HFValidationError, OSError, *(c.TransportError for c in clients)
    if get_token() is None:
        raise UserError(f"--repo {repo}: log in by `hf auth login` first, or set HF_TOKEN{files}")
    try:
        hub.create_repo(repo, exist_ok=True)
        done = hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="Add members")
    except refused as error:
        reason = first_line(error)[:70]
        raise UserError(
            f"--repo {repo} cannot be pushed to {hub.endpoint}: {reason}{files}"
        ) from error
    return str(done.commit_url)


def _write_eval_results(run: RunData, member: str, folder: Path) -> None:
    """`.eval_results/*.yaml`, as the Hub reads it: pass@1 in percent on each whole benchmark that
    has a data set there."""
    figures = run.figures
    if run.stale_figures:
        raise UserError(
            f"{run.path} has {run.stale_figures}: ask these by azr-population benchmark, or delete "
            f"{run.path / FIGURES}"
        )
    lines = [row for row in figures.get("lines", ()) if (row["model"], row["k"]) == (member, 1)]
    for about in figures.get("benchmarks", ()) if lines else ():
        data_set = str(about.get("hub") or "")
        if not HUB_NAME.fullmatch(data_set) or about["limit"]:
            continue
        task = data_set.rpartition("/")[2]
        entry = {
            "dataset": {"id": data_set, "task_id": task},
            "value": round(100 * lines[0]["cells"][about["title"]]["value"], 2),
            "notes": f"prompt {about['prompt']}, temperature {figures['temperature']:g}, "
            f"at most {about['max_tokens']} tokens, data {about['data']}",
        }
        file = folder / ".eval_results" / f"{task}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump([entry], sort_keys=False), encoding="utf-8")


def _facts(run: RunData, name: str) -> dict[str, object]:
    """Facts about a member from the records up to the step of its weights, for its card: one line
    each, fit to be published."""
    facts: dict[str, object] = {"name": name, "run": run.path.resolve().name}
    lines = [line for line in run.lines if line["step"] <= run.stored_step]
    figures = metrics_of_members(lines[-1]).get(name, {}) if lines else {}
    mu, sigma, generation = (figures.get(key) for key in ("mu", "sigma", "generation"))
    if mu is not None and sigma is not None:
        facts["rating"] = f"mu {mu:.2f}, sigma {sigma:.2f} (TrueSkill)"
    if generation is not None:
        facts["generation"] = f"{generation:.0f}"
    # Before the last birth the name was another member's.
    evals = [line for line in run.evals if line.get("member") == name]
    evals = [line for line in evals if line["step"] <= run.stored_step]
    evals = [line for line in evals if (line.get("generation") or 0) == (generation or 0)]
    shares = [_judged(line["greedy"]) for line in evals]
    if shares and shares[-1].n:
        last, first = (interval_text(share, percent=True) for share in (shares[-1], shares[0]))
        facts["eval"] = f"{last} of {shares[-1].n} held-out tasks at step {evals[-1]['step']}"
        if len(evals) > 1:
            facts["eval"] = f"{facts['eval']}; {first} at step {evals[0]['step']} of the run"
    for birth in run.births:
        if birth.child == name and birth.step <= run.stored_step:
            facts["lineage"] = birth.origin
    return {key: card_line(fact) for key, fact in facts.items()}


def _judged(scores: Sequence[float | None]) -> Estimate:
    """The share of tasks that were solved, of those that could be judged."""
    return interval([score for score in scores if score is not None], "share")


def _base(path: str, name: str | None) -> str | None:
    """The base's name on the Hub; None for the embedded one, which is in this package only."""
    if name is not None and not HUB_NAME.fullmatch(name):
        raise UserError(f"--base {name} is not a name on the Hub; give OWNER/NAME")
    if name or is_nano(path):
        return name
    if HUB_NAME.fullmatch(path) and not Path(path).exists():
        return path
    raise UserError("the members' base is a folder of this machine; name it with --base OWNER/NAME")


def _set_header(file: Path, base: str | None, license: str | None) -> None:
    """Writes the top of a card, which the Hub reads; nothing else of the card changes."""
    from huggingface_hub import ModelCard, ModelCardData

    card = ModelCard.load(file)
    tags = ["lora", "population-based-training"]
    card.data = ModelCardData(base_model=base, license=license, library_name="peft", tags=tags)
    card.save(file)
