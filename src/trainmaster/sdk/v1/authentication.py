"""v1's classes for logging in. Trainmaster needs no login: a workspace is a folder, protected by file permissions.

Every class takes v1's parameters, so that programs which pass `auth=` work. No password, token or secret is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from trainmaster.job.errors import AuthenticationException, UserErrorException

__all__ = [
    "AbstractAuthentication",
    "AuthenticationException",
    "AzureCliAuthentication",
    "InteractiveLoginAuthentication",
    "MsiAuthentication",
    "ServicePrincipalAuthentication",
    "TokenAuthentication",
]


class AbstractAuthentication:
    """The base of all classes for logging in."""

    def get_authentication_header(self) -> dict[str, str]:
        """The headers of an authenticated request: an empty dict."""
        return {}

    def get_token(self, *scopes: str, **kwargs: Any) -> NoReturn:
        """Not here: no cloud issues a token."""
        raise NotImplementedError(
            f"{type(self).__name__}.get_token: Trainmaster uses no cloud. Use the cloud's own SDK for its tokens."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InteractiveLoginAuthentication(AbstractAuthentication):
    """v1 opened a browser; here nothing happens."""

    def __init__(
        self, force: bool = False, tenant_id: str | None = None, cloud: str | None = None, **kwargs: Any
    ) -> None:
        self.tenant_id = tenant_id


class ServicePrincipalAuthentication(AbstractAuthentication):
    """v1's login of a program. The type of the password is checked; the password is not stored."""

    def __init__(
        self,
        tenant_id: str,
        service_principal_id: str,
        service_principal_password: str,
        cloud: str = "AzureCloud",
        **kwargs: Any,
    ) -> None:
        if service_principal_password is not None and not isinstance(service_principal_password, str):
            raise UserErrorException(
                f"service_principal_password must be a string, not {type(service_principal_password).__name__}"
            )
        self.tenant_id = tenant_id
        self.service_principal_id = service_principal_id


class AzureCliAuthentication(AbstractAuthentication):
    """v1 took the login of the `az` command; here nothing happens."""

    def __init__(self, cloud: str | None = None) -> None:
        self.cloud = cloud


class MsiAuthentication(AbstractAuthentication):
    """v1 took the identity of the machine; here nothing happens."""

    def __init__(self, cloud: str | None = None, **kwargs: Any) -> None:
        self.cloud = cloud


class TokenAuthentication(AbstractAuthentication):
    """v1 asked `get_token_for_audience` for tokens; here it is never called."""

    def __init__(self, get_token_for_audience: Callable[..., Any], cloud: str | None = None) -> None:
        if not callable(get_token_for_audience):
            raise UserErrorException(
                f"get_token_for_audience must be a function, not {type(get_token_for_audience).__name__}"
            )
        self.cloud = cloud
