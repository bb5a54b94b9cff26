import pytest
from tiny_chat_base import make_model, make_tokenizer


@pytest.fixture
def tokenizer():
    return make_tokenizer()


@pytest.fixture
def model():
    return make_model()


@pytest.fixture
def base_folder(tmp_path):
    folder = tmp_path / "tiny"
    make_model().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder
