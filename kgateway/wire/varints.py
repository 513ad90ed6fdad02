"""
Numbers of variable length: seven bits a byte, the lowest first. Signed numbers are zigzagged.
"""


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """
    An unsigned number of at most 32 bits, and the position after it.
    """
    first = data[pos]
    return (first, pos + 1) if first < 128 else more_uvarint(data, pos + 1, first)


def more_uvarint(data: bytes, pos: int, first: int, bits: int = 32) -> tuple[int, int]:
    """
    The rest of a number whose first byte, 128 or more, was read already.
    """
    value, shift = first & 127, 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift >= bits:
            raise ValueError(f"a variable-length number extends beyond {bits} bits")
    if value >> bits:
        raise ValueError(f"a variable-length number is larger than {bits} bits")
    return value, pos


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """
    A signed number of at most 32 bits, and the position after it.
    """
    value = data[pos]
    pos += 1
    if value > 127:
        value, pos = more_uvarint(data, pos, value)
    return (value >> 1) ^ -(value & 1), pos


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} does not fit 32 bits")
    write_uvarint(out, value << 1 if value >= 0 else ~value << 1 | 1)


def write_varlong(out: bytearray, value: int) -> None:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit 64 bits")
    write_uvarint(out, value << 1 if value >= 0 else ~value << 1 | 1)
