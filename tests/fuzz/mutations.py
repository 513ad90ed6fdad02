"""
Reproducible damage to valid messages.

Some of it is blind; some is aimed at lengths and tagged sections, which blind damage seldom changes in a way that lets
the decoder continue.
"""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from random import Random

from tests.fuzz.anatomy import Edit, Form, Mark, Role, edited, marks
from tests.fuzz.seeds import Seed, seeds

_I16, _I32 = (1 << 15) - 1, (1 << 31) - 1
EXTREMES = {
    Form.INT16: [_I16, -2, -_I16 - 1],
    Form.INT32: [1 << 20, _I32, -2, -_I32 - 1],
    Form.COMPACT: [1 << 14, 1 << 20, _I32, (1 << 32) - 2, (1 << 32) - 1, (1 << 64) - 2],
    Form.UNSIGNED: [1 << 14, 1 << 20, _I32, (1 << 32) - 1, 1 << 32, (1 << 64) - 1],
    Form.ZIGZAG: [1 << 14, _I32, -2, -_I32 - 1, _I32 + 1, (1 << 63) - 1],
}
_EXTREME_BYTES = [form.written(number) for form, numbers in EXTREMES.items() for number in (0, *numbers)]
_EXTREME_BYTES += [b"\xff" * 4, b"\xff" * 8, b"\x80" * 5, b"\x80" * 10, b"\xff" * 5 + b"\x0f", b"\x80\x80\0"]
UNKNOWN_TAG = 1000


def mutations(seed: Seed, count: int) -> Iterator[bytes]:
    """
    This many mutations of a seed, some of them damaged more than once.
    """
    random = Random(seed.data)
    for mutate in islice(cycle(_MUTATORS), count):
        yield _perhaps_more(random, mutate(random, seed))


def mutation(seed: Seed, random: Random) -> bytes:
    """
    Any mutation of a seed.
    """
    return _perhaps_more(random, random.choice(_MUTATORS)(random, seed))


def _perhaps_more(random: Random, data: bytes) -> bytes:
    while random.random() < 0.25:
        data = random.choice(_BLIND)(random, data)
    return data


def with_tag(seed: Seed, section: Mark, content: bytes, number: int = UNKNOWN_TAG) -> bytes:
    """
    The seed with another tag in this section; unless given, the tag is in no table.
    """
    tag = Form.UNSIGNED.written(number) + Form.UNSIGNED.written(len(content)) + content
    return edited(seed, section, section.saying(section.number + 1), Edit(section.stop, section.stop, tag))


def _somewhere(random: Random, data: bytes) -> int:
    return random.randrange(len(data) + 1)


def _cut(random: Random, data: bytes) -> bytes:
    return data[: _somewhere(random, data)]


def _flip(random: Random, data: bytes) -> bytes:
    pos = _somewhere(random, data)
    return data[:pos] + bytes(byte ^ 1 << random.randrange(8) for byte in data[pos : pos + 1]) + data[pos + 1 :]


def _set(random: Random, data: bytes) -> bytes:
    pos = _somewhere(random, data)
    return data[:pos] + random.choice((b"\0", b"\x7f", b"\x80", b"\xff")) + data[pos + 1 :]


def _overwrite(random: Random, data: bytes) -> bytes:
    pos, extreme = _somewhere(random, data), random.choice(_EXTREME_BYTES)
    return data[:pos] + extreme + data[pos + len(extreme) :]


def _insert(random: Random, data: bytes) -> bytes:
    pos = _somewhere(random, data)
    inserted = random.choice((*_EXTREME_BYTES, random.randbytes(random.randint(1, 16))))
    return data[:pos] + inserted + data[pos:]


def _delete(random: Random, data: bytes) -> bytes:
    pos = _somewhere(random, data)
    return data[:pos] + data[pos + random.randint(1, 16) :]


def _repeat(random: Random, data: bytes) -> bytes:
    start, end = sorted((_somewhere(random, data), _somewhere(random, data)))
    return data[:end] + data[start:]


def _blindly(mutate: Callable[[Random, bytes], bytes]) -> Callable[[Random, Seed], bytes]:
    return lambda random, seed: mutate(random, seed.data)


def _aimed_at(*roles: Role) -> Callable[[Callable[[Random, Seed, Mark], bytes]], Callable[[Random, Seed], bytes]]:
    """
    Turn a function that changes a mark of these roles into a mutator; without such a mark it flips a bit.
    """

    def decorate(mutate: Callable[[Random, Seed, Mark], bytes]) -> Callable[[Random, Seed], bytes]:
        def choose(random: Random, seed: Seed) -> bytes:
            found = [mark for mark in marks(seed) if mark.role in roles]
            return mutate(random, seed, random.choice(found)) if found else _flip(random, seed.data)

        return choose

    return decorate


@_aimed_at(*Role)
def _extreme(random: Random, seed: Seed, mark: Mark) -> bytes:
    return edited(seed, mark, mark.saying(random.choice(EXTREMES[mark.form])))


@_aimed_at(*Role)
def _near(random: Random, seed: Seed, mark: Mark) -> bytes:
    return edited(seed, mark, mark.saying(max(mark.number + random.choice((-2, -1, 1, 2)), 0)))


@_aimed_at(Role.TAGS)
def _another_tag(random: Random, seed: Seed, mark: Mark) -> bytes:
    content = random.randbytes(random.choice((random.randrange(20), 200)))
    return with_tag(seed, mark, content, random.choice((random.randrange(128), UNKNOWN_TAG, (1 << 32) - 1)))


@_aimed_at(Role.TAGS)
def _more_tags(random: Random, seed: Seed, mark: Mark) -> bytes:
    return edited(seed, mark, mark.saying(mark.number + random.choice((1, 2, 127, 128, 1 << 20))))


def _splice(random: Random, seed: Seed) -> bytes:
    """
    The head of one seed and the tail of another, of any version of the message.
    """
    other = random.choice(seeds(seed.message)).data
    return _cut(random, seed.data) + other[_somewhere(random, other) :]


_BLIND = [_cut, _flip, _set, _overwrite, _insert, _delete, _repeat]
_MUTATORS = [*map(_blindly, _BLIND), _extreme, _near, _another_tag, _more_tags, _splice]
