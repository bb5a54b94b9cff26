"""Programs of a warm-up: tasks from seed files (executed again, short, each program once), and
digests by which a proposal is recognised as a copy."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.source import laid_out
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.method.phases import seed_tasks
from azr_population.referee import Referee

FILE = "warmup_programs.txt"
"""In the base's folder: a digest a line."""
MAX_PROGRAM_CHARS = 400
_MAX_VALUE_CHARS = 60
_MAX_MESSAGE_CHARS = 100


def seed_programs(paths: Iterable[str | Path]) -> list[str]:
    """The programs of seed files, unexecuted."""
    return list(dict.fromkeys(seed.program for path in paths for seed in read_seed_file(path)))


def read_tasks(paths: Sequence[str | Path]) -> list[Task]:
    """The valid tasks of several seed files; a program comes once for each task type."""
    proposals = [_cut(proposal) for path in paths for proposal in read_seed_file(path)]
    first = {(proposal.type, proposal.program): proposal for proposal in reversed(proposals)}
    short = [proposal for proposal in first.values() if _is_short(proposal.inputs)]
    rules = TaskConfig(max_program_chars=MAX_PROGRAM_CHARS, max_output_chars=_MAX_VALUE_CHARS)
    if not short:
        return []
    with Referee() as referee:
        return seed_tasks(short, Code(), referee, rules)


def _cut(proposal: ParsedProposal) -> ParsedProposal:
    """With as many inputs as a proposal in a run, and without a long message."""
    inputs = dict.fromkeys(proposal.inputs)
    count = CODE_F_INPUTS if proposal.type == TaskType.CODE_F else 1
    message = proposal.message if len(proposal.message) <= _MAX_MESSAGE_CHARS else ""
    return replace(proposal, inputs=tuple(inputs)[:count], message=message)


def _is_short(texts: Sequence[str]) -> bool:
    return all(len(text) <= _MAX_VALUE_CHARS for text in texts)


def digest(program: str) -> str:
    """Twelve hex digits, the same however the program is laid out or commented."""
    text = laid_out(program) or program.strip()
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def read_digests(folder: str | Path) -> set[str]:
    """The digests of a base's warm-up; empty where it had none."""
    path = Path(folder) / FILE
    return set(path.read_text(encoding="ascii").split()) if path.is_file() else set()


def write_digests(folder: Path, digests: Iterable[str]) -> None:
    """Replaces the list."""
    (folder / FILE).write_text("\n".join(sorted(digests)) + "\n", encoding="ascii")
