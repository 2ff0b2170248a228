"""Values of secrets are hidden in whatever text they stand, and texts keep their length."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.shared import redaction
from trainmaster.shared.redaction import Mask

KEY = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJ0=\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("values", "text", "shown"),
    [
        (["hunter22"], "a hunter22 b hunter22", "a ******** b ********"),
        ([], "hunter22", "hunter22"),
        (["abc"], "abc is too short", "abc is too short"),
        (["abcd", "cdef"], "abcdef", "******"),
        (["abab"], "ababab", "******"),
        (['qu"ote'], json.dumps({"k": 'qu"ote'}), '{"k": "*******"}'),
        (["öäüß"], json.dumps("öäüß"), '"' + "*" * 24 + '"'),
        ([KEY], "MIIEowIBAAKCAQEA", "*" * 16),
        (["long-one", "long-one-and-more"], "long-one-and-more", "*" * 17),
        (["padded  \n"], "padded", "******"),
    ],
)
def test_hidden(values, text, shown):
    assert Mask(values).hide(text.encode()).decode() == shown


def test_json_within_json_stays_json():
    inner = json.dumps({"k": 'qu"ote\\ä'})
    hidden = json.loads(Mask(['qu"ote\\ä']).hide(json.dumps({"tail": inner}).encode()))
    assert "ote" not in hidden["tail"]


@given(
    st.lists(st.text("ab", min_size=4, max_size=8), min_size=1, max_size=3),
    st.text("abc", max_size=60),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_read_in_parts_no_value_is_shown(values, text, cuts):
    """Whatever is shown of a growing text, read in any parts, has no value in it, and has the length of the text."""
    mask, data = Mask(values), text.encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [
        mask.hide_next(data[max(0, start - mask.reach) : start], data[start:end])
        for start, end in itertools.pairwise(edges)
    ]
    shown = b"".join(parts)
    assert len(shown) == len(data)
    assert mask.hide(shown) == shown


@given(st.lists(st.text("ab", min_size=4, max_size=8), min_size=1, max_size=3), st.text("abc", max_size=60))
def test_in_a_file_in_blocks(tmp_path_factory, values, text):
    path = tmp_path_factory.mktemp("logs") / "log.txt"
    path.write_text(text)
    before = redaction._BLOCK
    redaction._BLOCK = 11
    try:
        Mask(values).hide_in_file(path)
    finally:
        redaction._BLOCK = before
    assert path.read_bytes() == Mask(values).hide(text.encode())
