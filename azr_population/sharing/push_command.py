"""`azr-population push`: members of a run to the Hugging Face Hub, or to a folder first."""

import argparse

DESCRIPTION = """\
Members as PEFT repositories with their cards: base, lineage, rating, exam, licence.

  azr-population push runs/mine teacher_0 --repo me/my-teacher --license apache-2.0
  azr-population push runs/mine student_0 student_1 --repo me/students --base Qwen/Qwen2.5-Coder-7B
  azr-population push runs/mine teacher_0 --to teacher        no network: what would be pushed

Several members lie in a folder each. The token is the Hub's own (`hf auth login`, or HF_TOKEN);
HF_ENDPOINT names another hub.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("path", metavar="RUN", help="the run's folder")
    parser.add_argument("members", nargs="+", metavar="MEMBER", help="teacher_0, student_1, ...")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--repo", metavar="OWNER/NAME", help="made if it is not there")
    where.add_argument("--to", metavar="FOLDER", help="write the folder and push nothing")
    parser.add_argument("--base", metavar="OWNER/NAME", help="the base's name on the Hub")
    parser.add_argument("--license", metavar="ID", help="for the card, e.g. apache-2.0")
    parser.add_argument("--private", action="store_true", help="if it is made, make it private")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code 0. Raises UserError: there is no such run or member, the folder is
    there already, the base has no name on the Hub, or the Hub refuses or cannot be reached."""
    import tempfile
    from pathlib import Path

    from azr_population.errors import UserError
    from azr_population.runs import RunDirectory
    from azr_population.sharing.repository import ON_THE_HUB, upload, write_repository

    if arguments.repo and not ON_THE_HUB.fullmatch(arguments.repo):
        raise UserError(f"--repo {arguments.repo} is not a name on the Hub; give OWNER/NAME")
    source = RunDirectory(arguments.path)
    _ = source.config_file
    about = (source, arguments.members, arguments.base, arguments.license)
    if arguments.to:
        out = Path(arguments.to)
        if out.exists():
            raise UserError(f"--to {out} is there already; name a new folder")
        write_repository(out, *about)
        print(f"{out}: what would be pushed")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "repository"
        write_repository(folder, *about)
        print(upload(folder, arguments.repo, arguments.private))
    return 0
