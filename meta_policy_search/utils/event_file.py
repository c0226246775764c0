"""Event files, which TensorBoard draws curves from, as bytes; written here so that logging needs no TensorFlow.

An event file is a sequence of records (length, data, and a checksum of each), and the data of a record are an `Event`,
a protocol buffer with the fields

===============  ======  ===========================================================================================
field            number  what
===============  ======  ===========================================================================================
`wall_time`      1       seconds since 1970, double
`step`           2       place on the horizontal axis, integer
`file_version`   3       in the first event, text
`summary`        5       values, each with a tag (1, text) and a number (2, float)
`session_log`    7       its status (1, integer) is 1 where a process begins at `step`: earlier events from that step on
                         do not count any more
===============  ======  ===========================================================================================
"""
import struct
import time
from collections.abc import Mapping

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5  # kinds of fields
_START = 1
_CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, bits reversed


def _make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def first_record() -> bytes:
    """Returns the record that an event file begins with."""
    return _record(_event(0, _bytes_field(3, b"brain.Event:2")))


def start_record(step: int) -> bytes:
    """Returns a record that says that a process goes on at `step`: what was written before from there on is void."""
    return _record(_event(step, _bytes_field(7, _key(1, _VARINT) + _varint(_START))))


def scalars_record(step: int, scalars: Mapping[str, float]) -> bytes:
    """Returns a record of numbers by name at `step`, an integer of at least 0; they become float32."""
    values = [_bytes_field(1, tag.encode()) + _key(2, _FLOAT) + _float32(value) for tag, value in scalars.items()]
    return _record(_event(step, _bytes_field(5, b"".join(_bytes_field(1, value) for value in values))))


def crc32c(data: bytes) -> int:
    """Returns the CRC-32C (Castagnoli) of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    """Returns the CRC as records have it: rotated, with a constant added."""
    crc = crc32c(data)
    rotated = (crc >> 15) | (crc << 17)
    return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


def _event(step: int, field: bytes) -> bytes:
    return _key(1, _DOUBLE) + struct.pack("<d", time.time()) + _key(2, _VARINT) + _varint(step) + field


def _bytes_field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    """Returns a non-negative integer in groups of 7 bits, the lowest first; the top bit says that more follow."""
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # beyond the range of float32
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
