"""Unique ids and the name of the user.

Without the uuid module: on some Pythons its import takes longer than the rest of the runtime.
"""

import os


def new_id() -> str:
    """A random UUID (version 4) as text.

    >>> len(new_id())
    36
    """
    octets = bytearray(os.urandom(16))
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    text = bytes(octets).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def user_name() -> str:
    """The name of the user who runs this program; the number of a user without a name."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
