"""TLS contexts from certificates in memory. Blocking: reading the system's authorities takes a while."""

from __future__ import annotations

import os
import ssl

from trainmaster.job.errors import ComputeTargetException


def make_ssl_context(authority: bytes, certificate: bytes, key: bytes, insecure: bool) -> ssl.SSLContext:
    """A context that trusts `authority` (empty: the system's authorities) and shows the client's certificate."""
    try:
        context = ssl.create_default_context(cadata=authority.decode(errors="replace") if authority else None)
    except ssl.SSLError as error:
        raise ComputeTargetException(
            "the certificate-authority of the Kubernetes API server cannot be read", cause=str(error)
        ) from None
    # Clusters have authorities that were made without the extensions this flag asks for.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _load_client_certificate(context, certificate, key)
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # The ssl module reads certificates from files only. This one is in memory, so no key is ever written to a disk.
    file = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(key + b"\n" + certificate)
        context.load_cert_chain(f"/proc/self/fd/{file}", password=_refuse_passphrase)
    except (ssl.SSLError, OSError) as error:
        raise ComputeTargetException(
            "the client certificate for the Kubernetes API server cannot be used",
            cause=str(error),
            hint="Check that client-certificate and client-key are PEM and belong together.",
        ) from None
    finally:
        os.close(file)


def _refuse_passphrase() -> str:
    raise ComputeTargetException(
        "the client key for the Kubernetes API server has a passphrase",
        hint="Trainmaster cannot ask for it. Use a key without one, a token, or a credential plugin.",
    )
