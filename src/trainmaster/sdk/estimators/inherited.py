"""Which variables of the submitting shell a job sees."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What programs need to find their files, temporary folders, certificates, proxies and drivers. No variables with
# secrets, and none that change what a script computes or imports (PYTHONPATH, PYTHONHASHSEED): those belong in
# environment_variables, so that the run's record has them. The engine sets CUDA_VISIBLE_DEVICES.
_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)
_PREFIXES = ("LC_", "XDG_")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@")


def select_inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that a job may see. A proxy with a password in its address is left out.

    >>> select_inherited({"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "s", "http_proxy": "http://me:pw@proxy"})
    {'PATH': '/bin'}
    """
    return {
        name: value
        for name, value in environ.items()
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _has_password(name, value)
    }


def _has_password(name: str, value: str) -> bool:
    return name.lower().endswith("_proxy") and bool(_PASSWORD.search(value))
