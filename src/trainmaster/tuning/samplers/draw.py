"""Random numbers as a function of names. There is no state that could be lost."""

from __future__ import annotations

from hashlib import blake2b

# One bit less than a float has, so that adding a half is exact and the result is less than 1.
_BITS = 52


def number(seed: int, *names: object, bits: int = 64) -> int:
    """An integer of `bits` bits that depends on `seed` and `names`."""
    text = "\0".join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> (64 - bits)


def unit(seed: int, *names: object) -> float:
    """A uniformly distributed number between 0 and 1, both excluded."""
    return (number(seed, *names, bits=_BITS) + 0.5) / float(1 << _BITS)
