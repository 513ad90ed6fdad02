"""
What hostile and broken clients send, always the same for a seed.

The bodies are made of names, ids and batches that mean something to the gateway, so that damage does not stop at the
first look-up. Each whole frame has its number as client id, so that a failure in the server's log names the frame.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kgateway.messages.catalogue import apis
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.wire.codec import encode
from kgateway.wire.headers import RequestHeader, request_header_version
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag
from kgateway.wire.uuids import SIZE, ZERO, Uuid
from tests.faults.client import batch_of
from tests.fuzz.anatomy import lists
from tests.fuzz.attacks import bloated
from tests.fuzz.mutations import mutation
from tests.fuzz.seeds import Seed

BODIES_EACH = 6  # plausible bodies for each version of each request
BLOATED_BYTES = 4 << 10
LASTING = "lasting"  # the topic that hostile clients write to and do not delete
_PASSING = [f"passing-{i}" for i in range(8)]
_CONFIGS = ["cleanup.policy", "compact", "retention.ms", "1", "-1"]
_TEXTS = [*_PASSING, *_CONFIGS, "", "group", "User:a", "*", "é🙂", "x" * 250]
_NUMBERS = [0, 0, 0, 1, 1, -1, -1, 2, 3, 10, 100, 1_000, 10_000]
_KEYS = [*range(-2, 100), 1_000, -(1 << 15), (1 << 15) - 1]
_REQUESTS = {key: api.request for key, api in apis().items()}
_OTHER_PROTOCOLS = [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes.fromhex("16030100f5010000f10303"), b"\r\n\r\n"]

Served = Mapping[int, range]


@dataclass(frozen=True, slots=True)
class Hostile:
    """
    A frame to be sent to a server.
    """

    what: str
    data: bytes
    correlation_id: int | None = None  # of the response, if there is one
    is_whole: bool = True  # the server will answer, close, or has a reason to wait


class Frames:
    """
    The frames of one seed.
    """

    def __init__(self, seed: str, served: Served, lasting_id: Uuid) -> None:
        self._seed = seed
        self._served = served
        self._apis = [(key, version) for key, versions in served.items() for version in versions if key in _REQUESTS]
        self._with_lists = [(key, version) for key, version in self._apis if lists(_REQUESTS[key], version)]
        self._lasting_id = lasting_id
        self._bodies: dict[tuple[int, int, int], Seed] = {}

    def __getitem__(self, number: int) -> Hostile:
        random = Random(f"{self._seed} {number}")
        [make] = random.choices(list(_KINDS), list(_KINDS.values()))
        return make(self, random, number)

    def sound(self, random: Random, number: int) -> Hostile:
        """
        A well-formed request, which may ask for nonsense.
        """
        seed = self._make(random, *random.choice(self._apis))
        return Hostile(f"{seed.message.__name__} v{seed.version}", _frame(_header(seed, number) + seed.data), number)

    def bloated(self, random: Random, number: int) -> Hostile:
        """
        A request with one list of as many items as fit.
        """
        key, version = random.choice(self._with_lists)
        request = _REQUESTS[key]
        path = random.choice(lists(request, version))
        header = _header(Seed(request, version, b""), number)
        what = f"{request.__name__} v{version}, all {path}"
        return Hostile(what, _frame(header + bloated(request, version, path, BLOATED_BYTES)), number)

    def damaged_body(self, random: Random, number: int) -> Hostile:
        seed = self._kept(random)
        what = f"{seed.message.__name__} v{seed.version}, damaged"
        return Hostile(what, _frame(_header(seed, number) + mutation(seed, random)), number)

    def damaged_header(self, random: Random, number: int) -> Hostile:
        seed = self._kept(random)
        version = request_header_version(seed.message, seed.version)
        header = mutation(Seed(RequestHeader, version, _header(seed, number)), random)
        return Hostile(f"{seed.message.__name__} v{seed.version} with a damaged header", _frame(header + seed.data))

    def wrong_size(self, random: Random, number: int) -> Hostile:
        """
        A size that differs from the frame's, or one that is never allowed.
        """
        sound = self.sound(random, number).data
        size = len(sound) - 4
        wrong = random.choice([size - 1, size + 1, random.randrange(size), 0, -1, -(1 << 31), (1 << 31) - 1, 100 << 20])
        return Hostile(f"a size of {wrong} for {size}", struct.pack(">i", wrong) + sound[4:], is_whole=wrong <= size)

    def half(self, random: Random, number: int) -> Hostile:
        """
        The first part of a frame.
        """
        sound = self.sound(random, number).data
        return Hostile("a part of a frame", sound[: random.randrange(len(sound))], is_whole=False)

    def garbage(self, random: Random, number: int) -> Hostile:
        noise = random.randbytes(random.randint(1, 300))
        data = random.choice([noise, _frame(noise), *_OTHER_PROTOCOLS])
        return Hostile("garbage", data, is_whole=len(data) >= 4 + int.from_bytes(data[:4], "big"))

    def not_served(self, random: Random, number: int) -> Hostile:
        """
        A key or a version that the server does not have.
        """
        seed = self._kept(random)
        key, version = seed.message.__spec__.key or 0, seed.version
        if random.random() < 0.5:
            key = random.choice([key for key in _KEYS if key not in self._served])
        else:
            first, last = self._served[key][0], self._served[key][-1]
            version = random.choice([-1, -(1 << 15), (1 << 15) - 1, first - 1, last + 1])
        header = struct.pack(">hhi", key, version, number) + _header(seed, number)[8:]
        return Hostile(f"key {key} v{version}", _frame(header + seed.data))

    def _make(self, random: Random, key: int, version: int) -> Seed:
        request = _REQUESTS[key]
        maker = _Plausible(random, request, version, self._lasting_id)
        return Seed(request, version, encode(maker.struct(request), version))

    def _kept(self, random: Random) -> Seed:
        """
        One of few cached requests: finding the lengths to damage takes a while.
        """
        place = (*random.choice(self._apis), random.randrange(BODIES_EACH))
        if place not in self._bodies:
            self._bodies[place] = self._make(Random(f"{self._seed} {place}"), *place[:2])
        return self._bodies[place]


_KINDS: dict[Callable[[Frames, Random, int], Hostile], int] = {
    Frames.sound: 24,
    Frames.bloated: 1,
    Frames.damaged_body: 40,
    Frames.damaged_header: 10,
    Frames.wrong_size: 7,
    Frames.half: 7,
    Frames.garbage: 5,
    Frames.not_served: 6,
}


def _frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _header(seed: Seed, number: int) -> bytes:
    header = RequestHeader(
        request_api_key=seed.message.__spec__.key or 0,
        request_api_version=seed.version,
        correlation_id=number,
        client_id=f"frame-{number}",
    )
    return encode(header, request_header_version(seed.message, seed.version))


class _Plausible:
    """
    Makes values that a client could send on purpose.
    """

    def __init__(self, random: Random, message: type[Message], version: int, lasting_id: Uuid) -> None:
        self._random = random
        self._version = version
        spared = message is DeleteTopicsRequest
        self._texts = _TEXTS if spared else [*_TEXTS, *[LASTING] * 10]
        self._ids = [ZERO, Uuid(random.randbytes(SIZE))] + ([] if spared else [lasting_id] * 4)

    def struct(self, kind: type[Struct]) -> Any:
        present = [field for field in kind.__fields__ if self._version in field.versions]
        return kind(**{field.name: self._field(field) for field in present if self._is_sent(field)})

    def _is_sent(self, field: Field) -> bool:
        return field.tag is None or self._random.random() < 0.3

    def _field(self, field: Field) -> Any:
        if self._version in field.nullable and self._random.random() < 0.2:
            return None
        return self._value(field.type)

    def _value(self, kind: WireType) -> Any:
        random = self._random
        match kind:
            case Fixed() | Zigzag():
                return self._number(kind)
            case Text():
                return random.choice(self._texts)
            case Binary():
                return random.choice([b"", random.randbytes(20)])
            case Referenced():
                return random.choice([batch_of(random.randbytes(20))] * 4 + [b"", batch_of(b"", b"x" * 100)])
            case UuidType():
                return random.choice(self._ids)
            case ListOf(item):
                return [self._value(item) for _ in range(random.choice((0, 1, 1, 2, 3)))]
            case StructOf(inner):
                return self.struct(inner)

    def _number(self, kind: Fixed | Zigzag) -> bool | int | float:
        match kind:
            case Fixed("?"):
                return self._random.random() < 0.5
            case Fixed("d"):
                return self._random.choice([0.0, 1.5, float("nan"), float("inf")])
            case Fixed("H" | "I"):
                return self._random.choice([0, 1, (1 << 8 * kind.size) - 1])
        most = (1 << (kind.bits if isinstance(kind, Zigzag) else 8 * kind.size) - 1) - 1
        return min(self._random.choice([*_NUMBERS, most, -most - 1]), most)
