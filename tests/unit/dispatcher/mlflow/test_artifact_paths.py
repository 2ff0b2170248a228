"""Which paths of artifacts are accepted, and that they are kept as they are."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.mlflow.addresses import split_path
from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/./b//c.txt", ("a", "b", "c.txt")),
        # The names that `log_image` of MLflow 2 gives: `%17` is not decoded again.
        ("images/dog%step%0%timestamp%1794981788872%h01.png", ("images", "dog%step%0%timestamp%1794981788872%h01.png")),
        ("100%0d", ("100%0d",)),
    ],
)
def test_names_are_kept(path: str, parts: tuple[str, ...]) -> None:
    assert split_path(path) == parts


@pytest.mark.parametrize(
    "path",
    ["..", "a/../b", "%2e%2e/b", "%252e%252e", "/a", "%2fa", "a\\b", "a%5cb", "a#b", "a\x01", "a\n", "file:a", "C:/a"],
)
def test_what_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(MlflowError, match="Invalid path") as caught:
        split_path(path)
    assert caught.value.code == WRONG
