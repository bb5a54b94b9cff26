import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a run with these completions."""

    def make(*rows):
        (tmp_path / "config.yaml").write_text("seed: 1\n")
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "completions.jsonl").write_text(text)
        return tmp_path

    return make
