"""Random numbers as a function of names: no state, so that nothing can be lost or drawn twice."""

from __future__ import annotations

from hashlib import blake2b

# One less than a float has, so that adding a half is exact and 1 is never reached.
_BITS = 52


def number(seed: int, *names: object, bits: int = 64) -> int:
    """A whole number of `bits` bits that belongs to `seed` and `names`."""
    text = "\0".join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> (64 - bits)


def unit(seed: int, *names: object) -> float:
    """A number strictly between 0 and 1, each as likely."""
    return (number(seed, *names, bits=_BITS) + 0.5) / float(1 << _BITS)
