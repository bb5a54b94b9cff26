"""A task, whatever its domain: what it is about, what goes in, what comes out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ParsedProposal:
    """What a teacher wrote, parsed but not yet judged. The domain defines what the texts mean; in
    `code` they are a program and the argument lists that it is called with."""

    type: str
    """One of the domain's types."""
    program: str
    inputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A proposal that the domain accepted, with its outputs, one for each input. Equal tasks are
    copies of each other."""

    type: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()


def texts_in(value: object) -> list[str]:
    """What a field of a record lists, as texts; nothing where it is not a list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def task_from_dict(row: dict[str, object]) -> Task:
    """A task from plain data with the fields of `Task`; raises for any other."""
    lists = [row["inputs"], row["outputs"], row.get("imports", ())]
    if not all(isinstance(values, (list, tuple)) for values in lists):
        raise TypeError(f"inputs, outputs and imports of a task must be lists: {lists}")
    inputs, outputs, imports = (tuple(values) for values in lists)  # type: ignore[arg-type, var-annotated]
    texts = [row["program"], row.get("message", ""), *inputs, *outputs, *imports, row["type"]]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"a task has a field that is not text: {texts}")
    program, message, *_, type = map(str, texts)
    return Task(type, program, inputs, outputs, message, imports)
