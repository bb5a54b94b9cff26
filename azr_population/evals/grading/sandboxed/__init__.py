"""What runs around a model's program inside the sandbox: outputs become text, and nothing more.

`text_of` gives the source that is sent there. A program may do with it what it likes: it can forge
its own outputs only, because nothing of what would be right is ever in the sandbox.
"""

import re
from functools import cache
from pathlib import Path

_OURS = re.compile(r"^from azr_population\S* import (?:\([^)]*\)|[^\n(]*)\n", re.MULTILINE)


@cache
def text_of(module: str) -> str:
    """The source of `values` and of a module of this folder that builds on it, as one text."""
    texts = (Path(__file__).with_name(f"{name}.py").read_text() for name in ("values", module))
    return "\n".join(_OURS.sub("", text) for text in texts)
