import json

import pytest

from azr_population.bases.nano import nano_base_path
from azr_population.domains.code.base_format import WARMUP_LOG, own_format
from azr_population.engines.base_model import load_tokenizer
from azr_population.errors import UserError


def letters(texts, add_special_tokens):
    """A tokenizer that knows no marks."""
    return {"input_ids": [list(map(ord, text)) for text in texts]}


def log(folder, told):
    (folder / WARMUP_LOG).write_text(told if isinstance(told, str) else json.dumps(told))
    return folder


def test_the_warm_up_decides_and_else_the_marks(tmp_path):
    assert own_format(tmp_path, letters) == "chat"
    assert own_format(nano_base_path(), load_tokenizer(nano_base_path())) == "nano"
    assert own_format(log(tmp_path, {"settings": {"format": "short"}}), letters) == "short"


@pytest.mark.parametrize("told", [{"settings": {"format": "azr"}}, {}, [], "{"])
def test_a_warm_up_in_no_known_format_is_told_in_one_line(tmp_path, told):
    with pytest.raises(UserError, match=r"warmup\.json") as caught:
        own_format(log(tmp_path, told), letters)
    assert told == "{" or "name one by --format: nano, chat, short" in str(caught.value)
