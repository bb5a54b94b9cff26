"""A library of two fat binaries, made here: what stays of it for one kind of GPU."""

import struct

import pytest
from device_code import zero_other_code

PTX, MACHINE_CODE = 1, 2


def fat_binary(*entries):
    """Bytes as NVIDIA's compiler lays them out: `entries` are (kind, architecture, code)."""
    body = b""
    for kind, arch, code in entries:
        head = struct.pack("<HHIQ", kind, 0x101, 64, len(code)).ljust(28, b"\0")
        body += (head + struct.pack("<I", arch)).ljust(64, b"\0") + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def left(*entries, widths=()):
    codes = [code for _, _, code in entries]
    library = bytearray(b"start" + fat_binary(*entries) + b"between" + fat_binary(*entries))
    size, zeroed = len(library), zero_other_code(library, 90, widths)
    kept = [code for code in codes if code in library]
    assert len(library) == size and library.startswith(b"start") and b"between" in library
    assert zeroed == 2 * sum(len(code) for code in codes if code not in kept)
    assert all(library.count(code) == 2 for code in kept)
    return kept


@pytest.mark.parametrize(
    "entries, kept",
    [
        ([(MACHINE_CODE, 80, b"a" * 90), (MACHINE_CODE, 90, b"b" * 70)], b"b"),
        ([(PTX, 90, b"p" * 80), (MACHINE_CODE, 90, b"b" * 70)], b"b"),
        # What is older, of the same generation; PTX that can be compiled there; nothing.
        ([(MACHINE_CODE, 86, b"a" * 90), (PTX, 80, b"p" * 80), (PTX, 100, b"q" * 80)], b"p"),
        ([(MACHINE_CODE, 100, b"a" * 90)], b""),
    ],
)
def test_code_for_other_gpus_becomes_zeros(entries, kept):
    assert b"".join(code[:1] for code in left(*entries)) == kept


def test_kernels_for_other_head_widths_and_types_become_zeros():
    names = [b"ELi128ENS_10bfloat16_t", b"ELi256ENS_10bfloat16_t", b"ELi128ENS_6half_t", b"reduce"]
    entries = [(MACHINE_CODE, 90, name.ljust(90, b".")) for name in names]
    kept = left(*entries, widths=(64, 128))
    assert [code.rstrip(b".") for code in kept] == [names[0], names[3]]
