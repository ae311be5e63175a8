"""A certificate authority with certificates for servers and workers, in the files that `config_file_path` names."""
from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any


def write_certificates(folder: Path) -> None:
    """Write ca.crt, server.p12, client.p12 (their passwords are 'server' and 'client'), revoked.pem with the server's, and tls.json."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12

    now = datetime.datetime.now(datetime.timezone.utc)
    folder.mkdir(exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])

    def certificate(name: str, key: Any, is_authority: bool) -> Any:
        builder = (
            x509.CertificateBuilder().subject_name(authority if is_authority else x509.Name(
                [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])).issuer_name(authority).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=400))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        return builder.sign(authority_key, hashes.SHA256())

    root = certificate(folder.name, authority_key, True)
    (folder / "ca.crt").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    serial_numbers = {}
    for kind in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        issued = certificate(f"torchspore-{kind}", key, False)
        serial_numbers[kind] = issued.serial_number
        protection = serialization.BestAvailableEncryption(kind.encode())
        (folder / f"{kind}.p12").write_bytes(pkcs12.serialize_key_and_certificates(kind.encode(), key, issued, None, protection))
    entry = x509.RevokedCertificateBuilder().serial_number(serial_numbers["server"]).revocation_date(now).build()
    revoked = x509.CertificateRevocationListBuilder().issuer_name(authority).last_update(now).next_update(now + datetime.timedelta(days=9))
    revoked = revoked.add_revoked_certificate(entry)
    (folder / "revoked.pem").write_bytes(revoked.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    paths = {"server_cert_path": "server.p12", "client_cert_path": "client.p12", "ca_cert_path": "ca.crt", "crl_path": ""}
    (folder / "tls.json").write_text(json.dumps(paths))
