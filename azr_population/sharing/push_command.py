"""Members of a run to the Hugging Face Hub, or to a folder first."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from azr_population.errors import UserError
from azr_population.runs import RunDirectory
from azr_population.sharing.repository import ON_THE_HUB, upload, write_repository


def push(
    path: str,
    members: Sequence[str],
    repo: str,
    out: Path | None = None,
    base: str | None = None,
    license: str | None = None,
    private: bool = False,
) -> None:
    """Pushes members to `repo`, or writes to the folder `out` what would be pushed. Raises
    UserError: there is no such run or member, the folder is there already, the base has no name on
    the Hub, or the Hub refuses or cannot be reached."""
    if not out and not ON_THE_HUB.fullmatch(repo):
        raise UserError(f"--repo {repo} is not a name on the Hub; give OWNER/NAME")
    source = RunDirectory(path)
    _ = source.config_file
    if out:
        if out.exists():
            raise UserError(f"--out {out} is there already; name a new folder")
        write_repository(out, source, members, base, license)
        print(f"{out}: what would be pushed")
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "repository"
        write_repository(folder, source, members, base, license)
        print(upload(folder, repo, private))
