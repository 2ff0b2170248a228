"""Names for runs whose client gives none, such as "calm-otter-417"."""

from __future__ import annotations

import secrets

# Words that MLflow's own names begin with, too: its clients may look for them.
# fmt: off
_QUALITIES = (
    "able", "bold", "bright", "calm", "capable", "charming", "clean", "colorful", "dapper", "dashing", "delightful",
    "entertaining", "fearless", "fun", "funny", "gentle", "gifted", "intelligent", "kindly", "learned", "likeable",
    "luminous", "merciful", "nimble", "orderly", "peaceful", "persistent", "placid", "polite", "popular",
    "powerful", "rare", "resilient", "respected", "serious", "silent", "sincere", "skillful", "smiling", "stately",
    "stylish", "tasteful", "thoughtful", "treasured", "unique", "upbeat", "useful", "valuable", "welcoming", "wise",
    "youthful",
)
# fmt: on
# fmt: off
_ANIMALS = (
    "ant", "badger", "bat", "bear", "beaver", "bee", "bison", "boar", "bream", "carp", "cat", "cod", "colt",
    "condor", "crab", "crane", "crow", "deer", "dog", "dove", "duck", "eagle", "eel", "elk", "falcon", "fawn",
    "finch", "fox", "frog", "gnu", "goat", "goose", "grouse", "gull", "hare", "hawk", "hen", "heron", "horse",
    "ibis", "jay", "koala", "lark", "lion", "llama", "loon", "lynx", "mare", "mole", "moose", "moth", "mouse",
    "mule", "newt", "orca", "otter", "owl", "ox", "panda", "perch", "pig", "pike", "pony", "puma", "quail",
    "rabbit", "ram", "rat", "raven", "robin", "rook", "seal", "shark", "sheep", "shrew", "shrimp", "skunk", "sloth",
    "snail", "sole", "squid", "stag", "stork", "swan", "tern", "tiger", "toad", "trout", "tuna", "turtle", "vole",
    "wasp", "whale", "wolf", "wren", "yak", "zebra",
)
# fmt: on


def choose_name() -> str:
    """A name that is easy to say. Two runs may have the same one."""
    return f"{secrets.choice(_QUALITIES)}-{secrets.choice(_ANIMALS)}-{secrets.randbelow(1000)}"
