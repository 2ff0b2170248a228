"""Delivery by e-mail over SMTP."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from email.message import EmailMessage
from typing import Any

from trainmaster.dispatcher.notifications.addresses import DeliveryError, Reach, connect
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notifications import SmtpSettings

_SECONDS = 30.0
_ADDRESS = re.compile(r"[^\s@,;<>\"()\[\]\\:]{1,64}@[A-Za-z0-9.-]{1,255}", re.ASCII)
_MOST = 20


def check_addresses(text: str) -> list[str]:
    """The e-mail addresses in a text, separated by commas.

    >>> check_addresses("ann@example.org, bob@example.org")
    ['ann@example.org', 'bob@example.org']
    """
    found = [each.strip() for each in text.split(",") if each.strip()]
    wrong = next((each for each in found if not _ADDRESS.fullmatch(each)), None)
    if wrong is not None or not found:
        raise UserErrorException(f"{(wrong or text)[:100]!r} is not an e-mail address")
    if len(found) > _MOST:
        raise UserErrorException(f"a channel has at most {_MOST} e-mail addresses")
    return found


def make_mail(subject: str, text: str, sender: str, recipients: list[str], notification_id: str) -> EmailMessage:
    """The message. Its id is that of the notification, so that one that comes twice is recognised."""
    mail = EmailMessage()
    mail["Subject"] = subject
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Message-ID"] = f"<{notification_id}@trainmaster>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text)
    return mail


def send(mail: EmailMessage, settings: SmtpSettings, password: str, reach: Reach) -> None:
    """Sends a message. An error if the mail server does not accept it for every recipient."""
    try:
        with _open(settings, reach) as server:
            if settings.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.user:
                server.login(settings.user, password)
            refused = server.send_message(mail)
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise DeliveryError(f"the mail server {settings.host} did not accept the message: {error}") from None
    if refused:
        raise DeliveryError(f"the mail server {settings.host} refused {', '.join(refused)}")


def _open(settings: SmtpSettings, reach: Reach) -> smtplib.SMTP:
    if settings.security == "tls":
        return _ReachedTls(settings, reach)
    return _Reached(settings, reach)


class _Reached(smtplib.SMTP):
    """SMTP over a connection whose address was checked."""

    def __init__(self, settings: SmtpSettings, reach: Reach) -> None:
        self._reach = reach
        super().__init__(settings.host, settings.port, timeout=_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: Any) -> socket.socket:
        return connect(host, port, self._reach, _SECONDS)


class _ReachedTls(_Reached):
    """The same, encrypted from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: Any) -> socket.socket:
        raw = super()._get_socket(host, port, timeout)
        return ssl.create_default_context().wrap_socket(raw, server_hostname=host)
