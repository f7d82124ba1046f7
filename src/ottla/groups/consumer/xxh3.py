"""XXH3, 64 bits: the hash with which Kafka notices that a group's topics have changed.

It is kept in the log with the epoch of a group, so ours must be Kafka's to the bit: seed 0 and the default secret.
After xxHash's specification; four ways, by the length of the input.
"""

import struct

_MASK = (1 << 64) - 1
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_MIX1 = 0x165667919E3779F9
_MIX2 = 0x9FB21C651E98DF25

_STRIPE = 64
_BLOCK_STRIPES = (len(_SECRET) - _STRIPE) // 8
_LANES = struct.Struct("<8Q")
_STRIPE_SECRETS = [_LANES.unpack_from(_SECRET, 8 * index) for index in range(_BLOCK_STRIPES)]
_SCRAMBLE_SECRET = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE)
_LAST_SECRET = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE - 7)


def xxh3(data: bytes) -> int:
    """Return the hash as an unsigned number."""
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 128:
        total = size * _PRIME64[0]
        for index in range((size - 1) // 32, -1, -1):
            total += _mix(data, 16 * index, 32 * index) + _mix(data, size - 16 * (index + 1), 32 * index + 16)
        return _avalanche(total & _MASK)
    if size <= 240:
        total = size * _PRIME64[0] + sum(_mix(data, at, at) for at in range(0, 128, 16))
        total = _avalanche(total & _MASK)
        total += sum(_mix(data, at, at - 128 + 3) for at in range(128, size // 16 * 16, 16))
        return _avalanche((total + _mix(data, size - 16, 136 - 17)) & _MASK)
    return _long(data, size)


def _read32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _read64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _flip(at: int) -> int:
    return _read64(_SECRET, at) ^ _read64(_SECRET, at + 8)


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(
        _read64(data, at) ^ _read64(_SECRET, secret_at),
        _read64(data, at + 8) ^ _read64(_SECRET, secret_at + 8),
    )


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MIX1 & _MASK
    return value ^ value >> 32


def _avalanche_xxh64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64[1] & _MASK
    value ^= value >> 29
    value = value * _PRIME64[2] & _MASK
    return value ^ value >> 32


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _read64(data, 0) ^ _flip(24)
        high = _read64(data, size - 8) ^ _flip(40)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        value = (_read32(data, size - 4) + (_read32(data, 0) << 32)) ^ _flip(8)
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = value * _MIX2 & _MASK
        value ^= (value >> 35) + size
        value = value * _MIX2 & _MASK
        return value ^ value >> 28
    if size:
        value = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_xxh64(value ^ _read32(_SECRET, 0) ^ _read32(_SECRET, 4))
    return _avalanche_xxh64(_flip(56))


def _long(data: bytes, size: int) -> int:
    lanes = [
        _PRIME32[2], _PRIME64[0], _PRIME64[1], _PRIME64[2], _PRIME64[3], _PRIME32[1], _PRIME64[4], _PRIME32[0],
    ]  # fmt: skip
    for stripe in range((size - 1) // _STRIPE):
        place = stripe % _BLOCK_STRIPES
        _accumulate(lanes, _LANES.unpack_from(data, stripe * _STRIPE), _STRIPE_SECRETS[place])
        if place == _BLOCK_STRIPES - 1:
            for lane, key in enumerate(_SCRAMBLE_SECRET):
                value = lanes[lane]
                lanes[lane] = (value ^ value >> 47 ^ key) * _PRIME32[0] & _MASK
    _accumulate(lanes, _LANES.unpack_from(data, size - _STRIPE), _LAST_SECRET)
    total = size * _PRIME64[0]
    for lane in range(0, 8, 2):
        at = 11 + 8 * lane
        total += _fold(lanes[lane] ^ _read64(_SECRET, at), lanes[lane + 1] ^ _read64(_SECRET, at + 8))
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], values: tuple[int, ...], keys: tuple[int, ...]) -> None:
    for lane, value in enumerate(values):
        key = value ^ keys[lane]
        lanes[lane ^ 1] = (lanes[lane ^ 1] + value) & _MASK
        lanes[lane] = (lanes[lane] + (key & 0xFFFFFFFF) * (key >> 32)) & _MASK
