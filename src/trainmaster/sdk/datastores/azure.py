"""Azure Blob Storage: turns v1's parameters into the address and options of the driver (adlfs). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmaster.job.errors import UserErrorException

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"\$?[a-z0-9](?:[a-z0-9-]{1,61})[a-z0-9]")
# Servers with an IP address or a bare name have the account in the path instead of in the host.
_BARE_HOST = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]|[A-Za-z0-9-]+)(?::\d+)?(?:/.*)?")


@dataclass(frozen=True)
class BlobContainer:
    """A container of a storage account, and its credentials."""

    account_name: str
    container_name: str
    account_key: str = ""
    sas_token: str = ""
    protocol: str = ""
    endpoint: str = ""

    @property
    def url(self) -> str:
        """The address for fsspec."""
        return f"az://{self.container_name}"

    def options(self) -> dict[str, str | bool]:
        """The options for the driver."""
        if self.account_key:
            return self._connection_options(f"AccountKey={self.account_key}")
        if self.sas_token:
            return self._connection_options(f"SharedAccessSignature={self.sas_token.lstrip('?')}")
        # The driver uses the credentials of this machine: variables, az login, a managed identity.
        return {"account_name": self.account_name, "account_host": self._host(), "anon": False}

    def blob_endpoint(self) -> str:
        """The address of the account.

        >>> BlobContainer("store", "c").blob_endpoint()
        'https://store.blob.core.windows.net'
        >>> BlobContainer("store", "c", protocol="http", endpoint="127.0.0.1:10000").blob_endpoint()
        'http://127.0.0.1:10000/store'
        """
        return f"{self.protocol or 'https'}://{self._host()}"

    def _host(self) -> str:
        endpoint = self.endpoint.rstrip("/") or "core.windows.net"
        if not _BARE_HOST.fullmatch(endpoint):
            return f"{self.account_name}.blob.{endpoint}"
        return endpoint if endpoint.endswith(f"/{self.account_name}") else f"{endpoint}/{self.account_name}"

    def _connection_options(self, credential: str) -> dict[str, str | bool]:
        parts = (
            f"DefaultEndpointsProtocol={self.protocol or 'https'}",
            f"AccountName={self.account_name}",
            credential,
            f"BlobEndpoint={self.blob_endpoint()}",
        )
        return {"account_name": self.account_name, "connection_string": ";".join(parts)}


def blob_container(
    container_name: object,
    account_name: object,
    sas_token: object = None,
    account_key: object = None,
    protocol: object = None,
    endpoint: object = None,
) -> BlobContainer:
    """The container with these parameters of v1; raises an error for the first wrong one."""
    if not isinstance(account_name, str) or not _ACCOUNT.fullmatch(account_name):
        raise UserErrorException(
            f"{account_name!r} cannot be an account_name", hint="Use 3 to 24 lowercase letters and digits."
        )
    if not isinstance(container_name, str) or not _CONTAINER.fullmatch(container_name):
        raise UserErrorException(
            f"{container_name!r} cannot be a container_name",
            hint="Use 3 to 63 lowercase letters, digits and dashes; the first and last must be a letter or digit.",
        )
    if sas_token and account_key:
        raise UserErrorException("give either sas_token or account_key, not both")
    if protocol not in (None, "", "http", "https"):
        raise UserErrorException(f"protocol must be http or https, not {protocol!r}")
    return BlobContainer(
        account_name,
        container_name,
        _credential("account_key", account_key),
        _credential("sas_token", sas_token),
        str(protocol or ""),
        _endpoint(endpoint),
    )


def part_of_connection(options: object, name: str) -> str:
    """A part of the connection string in a datastore's options, such as AccountKey; empty if it is missing."""
    text = options.get("connection_string", "") if isinstance(options, dict) else ""
    parts = dict(part.partition("=")[::2] for part in str(text).split(";"))
    return parts.get(name, "")


def _credential(name: str, value: object) -> str:
    if value is None:
        return ""
    # Never shown: the message would put a key into a log.
    if not isinstance(value, str) or not value.isprintable() or ";" in value or not value.strip():
        raise UserErrorException(f"{name} is not a key: it must be one line of text without ';'")
    if name == "account_key" and not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value):
        raise UserErrorException(
            "account_key is not a key: it must be base64",
            hint="Copy it from the storage account's access keys. A token with '&' and 'sig=' is a sas_token.",
        )
    return value


def _endpoint(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable() or "://" in value or ";" in value:
        raise UserErrorException(
            f"endpoint must be the end of a host name, such as core.windows.net or 127.0.0.1:10000, not {value!r}",
            hint="Give http or https as protocol=.",
        )
    return value
