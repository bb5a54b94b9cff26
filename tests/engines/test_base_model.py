"""How a base is told from another one."""

import pytest

from azr_population.engines.base_model import _SAMPLE_BYTES, fingerprint
from azr_population.nano import nano_base_path


@pytest.fixture
def copies(tmp_path):
    """Two folders with the same weights, larger than what is sampled of them."""
    weights = bytes(range(256)) * (_SAMPLE_BYTES // 64)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    return tmp_path


def test_a_copy_has_the_same_fingerprint(copies):
    assert fingerprint(copies / "a") == fingerprint(str(copies / "b"))
    assert len(fingerprint(copies / "a")) == 12


@pytest.mark.parametrize("place", [0, -1])
def test_other_weights_have_another(copies, place):
    path = copies / "b" / "model.safetensors"
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1
    path.write_bytes(changed)
    assert fingerprint(copies / "a") != fingerprint(copies / "b")


def test_a_file_smaller_than_a_sample_is_read_whole(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"1234")
    before = fingerprint(tmp_path)
    path.write_bytes(b"1235")
    assert fingerprint(tmp_path) != before != fingerprint(nano_base_path())
