"""A program whose output is the name of the exception that it raises."""

from collections.abc import Sequence

NO_ERROR = "NoError"
"""AZR's name for none."""

_ENTRY = """\
def f(*args, **named):
    space = {{}}
    try:
        exec({source!r}, space)
        repr(space["f"](*args, **named))
    except MemoryError:
        raise
    except BaseException as error:
        kind = type(error)
        module = getattr(kind, "__module__", "builtins")
        if module.startswith("sandbox."):
            raise
        return (module + "." if module not in ("builtins", "__main__") else "") + kind.__qualname__
    return {none!r}
"""
"""As AZR reads it: the last line of a traceback up to the colon, which is the qualified name. What
the value's `repr` raises counts, the value does not. The program has a namespace of its own, so
that an `f` that calls itself does not meet this one. Lack of memory is the machine's affair, and
what the sandbox forbids is not the program's."""


def naming(program: str, imports: Sequence[str] = ()) -> str:
    """A program like this one that returns the name of what it raises, or `NoError`."""
    source = "\n".join([*imports, program])
    return _ENTRY.format(source=source, none=NO_ERROR)


def same_name(answer: str, name: str) -> bool:
    """AZR's rule: the first word, up to a colon, in any case (`reward_managers.py`)."""
    return answer.split(" ")[0].split(":")[0].lower() == name.lower()
