"""The container's health check: does every configured port answer with the certificate it should?"""

import socket
import ssl
import sys

from chaincode.settings import Entry, ServiceSettings

SECONDS = 3.0
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def check(settings: ServiceSettings) -> int:
    """Probe each port; print the ones that fail. Returns the exit code."""
    failed = 0
    for entry in settings.chaincodes:
        problem = _problem(entry)
        if problem:
            failed = 1
            print(f"{entry.name}: {entry.listen}: {problem}", file=sys.stderr)  # noqa: T201
    return failed


def _problem(entry: Entry) -> str | None:
    host, port = entry.address
    try:
        with socket.create_connection((ANY_ADDRESS.get(host, host), port), SECONDS) as plain:
            return _tls_problem(plain, entry.tls.certificate) if entry.tls else None
    except OSError as error:
        return error.strerror or type(error).__name__


def _tls_problem(plain: socket.socket, certificate: bytes) -> str | None:
    """Shake hands and compare the certificate; the comparison replaces the verification switched off here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(plain) as wrapped:
        served = wrapped.getpeercert(binary_form=True) or b""
    first = certificate[certificate.index(b"-----BEGIN CERTIFICATE-----") :].decode()
    end = first.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    expected = ssl.PEM_cert_to_DER_cert(first[:end])
    return None if served == expected else "it serves another certificate than the configured one"
