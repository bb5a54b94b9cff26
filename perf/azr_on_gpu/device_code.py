"""Makes CUDA libraries compress to a tenth: device code that one kind of GPU never loads becomes
zeros.

    python perf/azr_on_gpu/device_code.py LIBRARY... [--arch 90] [--widths 64 128]

A CUDA library has fat binaries: a header (magic number, version, its own length, length of what
follows) and entries, each with a header (kind, length, payload's length, architecture) and code for
one architecture. Lengths and headers stay, so offsets, symbols and the driver's choice do too. Kept
are machine code for `--arch`, else the newest of the same generation below it, else PTX below it.
With `--widths` FlashAttention's kernels for other head widths than these, and for other types than
bfloat16, go as well.
"""

from __future__ import annotations

import argparse
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_FAT_BINARY = struct.pack("<IHH", 0xBA55ED50, 1, 16)
_KERNEL = re.compile(rb"ELi(\d+)ENS_(10bfloat16_t|6half_t|12float_e4m3_t)")
"""Head width and type in the mangled name of one of FlashAttention 3's kernels."""


class Code(NamedTuple):
    """One entry of a fat binary: PTX or machine code, and where its payload is."""

    is_machine_code: bool
    arch: int
    payload: slice


def zero_other_code(library: bytearray, arch: int, widths: Sequence[int] = ()) -> int:
    """Zeroes device code in place; returns its bytes."""
    zeroed = 0
    for binary in re.finditer(re.escape(_FAT_BINARY), bytes(library)):
        codes = list(_codes(library, binary.start()))
        usable = [code for code in codes if code.arch <= arch]
        kept = max(
            (code for code in usable if not code.is_machine_code or code.arch // 10 == arch // 10),
            key=lambda code: code[:2],
            default=None,
        )
        for code in codes:
            if kept and code[:2] == kept[:2] and _has_width(library[code.payload], widths):
                continue
            size = code.payload.stop - code.payload.start
            library[code.payload] = bytes(size)
            zeroed += size
    return zeroed


def _codes(library: bytearray, start: int) -> Iterator[Code]:
    """The entries of the fat binary that starts there; none where only its magic number stands."""
    (size,) = struct.unpack_from("<Q", library, start + 8)
    at, end = start + 16, start + 16 + size
    while at + 64 <= end <= len(library):
        kind, _, header, payload = struct.unpack_from("<HHIQ", library, at)
        (arch,) = struct.unpack_from("<I", library, at + 28)
        if kind not in (1, 2) or header < 32:
            return
        yield Code(kind == 2, arch, slice(at + header, at + header + payload))
        at += header + payload


def _has_width(code: bytes, widths: Sequence[int]) -> bool:
    """Whether the code names no kernel of FlashAttention, or one of these widths in bfloat16."""
    kernels = _KERNEL.findall(code) if widths else []
    return not kernels or any(
        int(width) in widths and kind == b"10bfloat16_t" for width, kind in kernels
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("libraries", nargs="+", type=Path, metavar="LIBRARY")
    parser.add_argument("--arch", type=int, default=90, help="90 is an H100 or H200")
    parser.add_argument("--widths", nargs="+", type=int, default=[])
    asked = parser.parse_args()
    for path in asked.libraries:
        library = bytearray(path.read_bytes())
        zeroed = zero_other_code(library, asked.arch, asked.widths)
        path.write_bytes(library)
        print(f"{path.name}: {zeroed / 2**20:.1f} of {len(library) / 2**20:.1f} MiB zeroed")


if __name__ == "__main__":
    main()
