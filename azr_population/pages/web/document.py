"""HTML files made of one style, one script and the data, with a policy that allows no more."""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from azr_population.pages.web.templates import piece

_WEB = Path(__file__).parent


def document(template: str, scripts: Sequence[str], data: Any, title: str, **context: Any) -> str:
    """The page whose body is `web/<template>`, filled with `context` and everything that it needs.

    `data` is what the scripts draw. The page works from a file, without a server or the network.
    """
    script = "\n".join((_WEB / f"{name}.js").read_text(encoding="utf-8") for name in scripts)
    style = (_WEB / "page.css").read_text(encoding="utf-8")
    drawn = {"script": Markup(script), "data": Markup(embedded(data))}
    body = piece(template, title=title, **drawn, **context)
    policy = Markup(_policy(script, style))
    return piece("frame.html", title=title, policy=policy, style=Markup(style), body=body)


def embedded(data: Any) -> str:
    """JSON for a script element; no character in it can end the element."""
    encoded = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str, style: str) -> str:
    """Allows exactly these two texts, so that anything that slips through escaping stays inert."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
