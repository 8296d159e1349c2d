"""Contexts of TLS from files."""

import ssl
from pathlib import Path

import pytest

from headrace.services.tls import ClientCertificate, TlsFailed, TlsSettings
from tests.support.certificates import Authority


def test_a_context_knows_the_certificate_and_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("server", password="secret")
    context = TlsSettings(
        certificate_file=certificate.certificate_file,
        key_file=certificate.key_file,
        key_password="secret",
        ca_file=authority.ca_file,
        client_certificate=ClientCertificate.REQUIRED,
    ).make_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509_ca"] == 1
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_wrong_password_is_told_without_asking(tmp_path: Path, password: str | None) -> None:
    certificate = Authority(tmp_path).issue("server", password="secret")
    settings = TlsSettings(
        certificate_file=certificate.certificate_file,
        key_file=certificate.key_file,
        key_password=password,
    )
    with pytest.raises(TlsFailed, match=r"TLS cannot use .*server\.pem, .*server\.key"):
        settings.make_context()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    settings = TlsSettings(certificate_file=missing, key_file=missing)
    with pytest.raises(TlsFailed, match=r"missing\.pem: No such file"):
        settings.make_context()
