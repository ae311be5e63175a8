"""The JSON file of `set_ps_context(config_file_path=...)`, with MindSpore's keys: certificates, checks, recovery, and time limits.

| key | meaning |
|---|---|
| `server_cert_path`, `client_cert_path` | PKCS#12 files with certificate and key; `server_password` and `client_password` decrypt them |
| `ca_cert_path` | the PEM file of the certificate authority that signed both |
| `crl_path` | a PEM list of revoked certificates; empty for none |
| `cipher_list` | OpenSSL names of ciphers, separated by colons |
| `cert_expire_warning_time_in_day` | days before the end of a certificate from which a warning is printed, 7 to 180 |
| `cert_check_interval_in_hour` | hours between two such checks, 168 by default |
| `connection_num` | no effect: the connections of a job are those of its processes |
| `recovery` | {"storage_type": 1, "storage_file_path": FOLDER}; `storge_file_path`, as MindSpore's guide spells it, works too |
| `recovery.save_steps` | torchspore only: the number of steps between two snapshots of a server, 1 by default |
| `heartbeat_interval_in_second` | torchspore only: the time between two heartbeats, 1 by default |
| `worker_timeout_in_second` | torchspore only: the longest wait for a slow worker, 600 by default |

Relative paths are relative to the folder of the JSON file.
"""
from __future__ import annotations

import datetime
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.base.frames import warn
from torchspore.base.text import list_choices, message
from torchspore.context.store import STORE

_PATHS = ("server_cert_path", "client_cert_path", "ca_cert_path", "crl_path")
_NUMBERS = {
    "cert_expire_warning_time_in_day": (7, 180), "cert_check_interval_in_hour": (1, 8760), "connection_num": (1, 10**6),
    "heartbeat_interval_in_second": (0.05, 3600), "worker_timeout_in_second": (0.1, 10**6),
}
_KEYS = (*_PATHS, *_NUMBERS, "cipher_list", "recovery")
_CHECK_HOURS = 168
_RECOVERY = ("storage_type", "storage_file_path", "storge_file_path", "save_steps")


@dataclass(frozen=True)
class Recovery:
    """How servers recover: the folder of the snapshots, and the number of steps between two snapshots."""

    folder: Path
    save_steps: int


@dataclass(frozen=True)
class Credentials:
    """TLS material in PEM: this process's key and certificate, the authority's certificate, and the serial numbers of revoked ones."""

    key: bytes
    certificate: bytes
    authority: bytes
    revoked: frozenset[int]


@dataclass(frozen=True)
class Configuration:
    """The checked contents of the file, with defaults for the keys that it does not contain."""

    values: dict[str, Any]
    folder: Path
    recovery: Recovery | None = None

    @property
    def heartbeat(self) -> float:
        """The seconds between two heartbeats."""
        return float(self.values.get("heartbeat_interval_in_second", 1.0))

    @property
    def worker_timeout(self) -> float:
        """The seconds that a step waits for its slowest worker."""
        return float(self.values.get("worker_timeout_in_second", 600.0))

    def path(self, key: str) -> Path | None:
        """Return the path of a key; None if it is absent or empty."""
        text = self.values.get(key) or ""
        return self.folder / text if text else None


def read() -> Configuration:
    """Read the file of the context. Raises ValueError that names the key, the value and what is expected."""
    text = str(STORE.get("ps.config_file_path"))
    if not text:
        return Configuration({}, Path())
    path = Path(text)
    try:
        values = json_text.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(message(f"set_ps_context(config_file_path={text!r})", f"a file that can be read ({error.strerror})")) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(message(f"set_ps_context(config_file_path={text!r})", f"a JSON file ({error})")) from None
    if not isinstance(values, dict):
        raise ValueError(message(f"{path}: {type(values).__name__}", "a JSON object"))
    _check(path, values)
    if "connection_num" in values:
        warn(f"{path}: connection_num has no effect: the connections of a job are those of its processes.")
    return Configuration(values, path.resolve().parent, _recovery(path, values.get("recovery")))


def _check(path: Path, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if key not in _KEYS:
            raise ValueError(message(f"{path}: {key!r}", list_choices(_KEYS)))
        if key in _NUMBERS:
            low, high = _NUMBERS[key]
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise ValueError(message(f"{path}: {key}={value!r:.40}", f"a number from {low} to {high}"))
        elif key != "recovery" and not isinstance(value, str):
            raise ValueError(message(f"{path}: {key}={value!r:.40}", f"a str, got {type(value).__name__}"))


def _recovery(path: Path, values: Any) -> Recovery | None:
    if values is None:
        return None
    if not isinstance(values, dict) or not set(values) <= set(_RECOVERY):
        raise ValueError(message(f"{path}: recovery={values!r:.80}", f"an object with the keys {', '.join(_RECOVERY)}"))
    if values.get("storage_type", 1) != 1:
        raise ValueError(message(f"{path}: storage_type={values['storage_type']!r:.40}", "1, files"))
    folder = values.get("storage_file_path") or values.get("storge_file_path")
    if not isinstance(folder, str):
        raise ValueError(message(f"{path}: recovery without storage_file_path", "the folder of the snapshots"))
    steps = values.get("save_steps", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(message(f"{path}: save_steps={steps!r:.40}", "an int from 1 on"))
    return Recovery(path.resolve().parent / folder, steps)


def credentials(configuration: Configuration, role: str) -> Credentials | None:
    """Return the TLS material of this process; None if `enable_ssl` is False. Raises ValueError for files or passwords that do not fit.

    Servers and the scheduler use the server's certificate, workers the client's.
    """
    if not STORE.get("ps.enable_ssl"):
        return None
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise RuntimeError(message(
            "set_ps_context(enable_ssl=True) without the package cryptography", "the package",
            hint="pip install 'torchspore[encryption]'",
        )) from None
    kind = "client" if role == "worker" else "server"
    path, authority_path = configuration.path(f"{kind}_cert_path"), configuration.path("ca_cert_path")
    if path is None or authority_path is None:
        absent = f"{kind}_cert_path" if path is None else "ca_cert_path"
        raise ValueError(message(f"set_ps_context(enable_ssl=True): the file of config_file_path has no {absent}", f"{absent}"))
    password, content = str(STORE.get(f"ps.{kind}_password")), _content(path)
    try:
        key, certificate, _ = pkcs12.load_key_and_certificates(content, password.encode() or None)
    except ValueError:
        raise ValueError(message(f"{path}: the password of set_ps_context({kind}_password=...) does not open it", "its password")) from None
    if key is None or certificate is None:
        raise ValueError(message(f"{path}", "a PKCS#12 file with a certificate and a private key"))
    authority = _content(authority_path)
    try:
        x509.load_pem_x509_certificate(authority)
    except ValueError:
        raise ValueError(message(f"{authority_path}", "a certificate in PEM format")) from None
    _warn_of_expiry(configuration, path, certificate)
    _check_again(configuration, path, certificate)
    return Credentials(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM), authority, _revoked(configuration),
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(message(f"{path}", f"a file that can be read ({error.strerror})")) from None


def host_name(certificate: Any) -> str:
    """Return the first DNS name of a certificate, otherwise its common name."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if names:
        return str(names[0])
    common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(common[0].value) if common else ""


def _revoked(configuration: Configuration) -> frozenset[int]:
    path = configuration.path("crl_path")
    if path is None:
        return frozenset()
    from cryptography import x509

    try:
        return frozenset(entry.serial_number for entry in x509.load_pem_x509_crl(_content(path)))
    except ValueError:
        raise ValueError(message(f"{path}", "a list of revoked certificates in PEM format")) from None


def _warn_of_expiry(configuration: Configuration, path: Path, certificate: Any) -> None:
    """Print a warning before a certificate expires. Raises ValueError for one that is not valid today."""
    now = datetime.datetime.now(datetime.timezone.utc)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        limits = f"{certificate.not_valid_before_utc:%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}"
        raise ValueError(message(f"{path}: a certificate that is valid from {limits}", "one that is valid today"))
    days = (certificate.not_valid_after_utc - now).days
    if days < configuration.values.get("cert_expire_warning_time_in_day", 90):
        print(f"torchspore: the certificate in {path} expires in {days} days.", file=sys.stderr, flush=True)


def _check_again(configuration: Configuration, path: Path, certificate: Any) -> None:
    """Warn of the end of a certificate again each `cert_check_interval_in_hour`."""
    def check() -> None:
        _warn_of_expiry(configuration, path, certificate)
        _check_again(configuration, path, certificate)

    hours = float(configuration.values.get("cert_check_interval_in_hour", _CHECK_HOURS))
    timer = threading.Timer(3600 * hours, check)
    timer.daemon = True
    timer.start()


def set_ciphers(configuration: Configuration) -> None:
    """Let gRPC use the ciphers of `cipher_list`; it reads them once, before the first connection."""
    ciphers = str(configuration.values.get("cipher_list") or "").replace(" ", "")
    if ciphers:
        os.environ["GRPC_SSL_CIPHER_SUITES"] = ciphers
