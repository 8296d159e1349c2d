"""TLS of an HTTP program: files and the client's certificate, as a context for its listener."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum

from headrace.errors import HeadraceError


class ClientCertificate(Enum):
    """Whether a client has to show a certificate; Kafka's and Confluent's words (`ssl.client.auth`)."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class TlsFailed(HeadraceError):
    """The files of TLS cannot be used; the text names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """PEM files. Clients' certificates are checked against `ca_file`."""

    certificate_file: str
    key_file: str
    key_password: str | None = None
    ca_file: str | None = None
    client_certificate: ClientCertificate = ClientCertificate.NONE

    def make_context(self) -> ssl.SSLContext:
        """The context of a server. Raises TlsFailed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = _VERIFY[self.client_certificate]
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(
                self.certificate_file, self.key_file, lambda: self.key_password or ""
            )
            if self.ca_file is not None:
                context.load_verify_locations(self.ca_file)
        except OSError as error:  # SSLError is one
            files = ", ".join(filter(None, (self.certificate_file, self.key_file, self.ca_file)))
            raise TlsFailed(f"TLS cannot use {files}: {error.strerror or error}") from error
        return context


_VERIFY = {
    ClientCertificate.NONE: ssl.CERT_NONE,
    ClientCertificate.REQUESTED: ssl.CERT_OPTIONAL,
    ClientCertificate.REQUIRED: ssl.CERT_REQUIRED,
}
