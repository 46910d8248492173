"""The configuration of the chaincode service: read once, checked wholly, then believed."""

import ipaddress
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaincode.registry import CONTRACTS

LEVELS = ("debug", "info", "warning", "error")


class SettingsError(Exception):
    """The configuration file cannot be used; the sentence names the file, the place and the remedy."""


@dataclass(frozen=True)
class TlsFiles:
    """The contents of the PEM files of one chaincode."""

    key: bytes = field(repr=False)
    certificate: bytes
    client_roots: bytes


@dataclass(frozen=True)
class Entry:
    """One chaincode to serve."""

    name: str
    id: str
    listen: str
    tls: TlsFiles | None

    @property
    def address(self) -> tuple[str, int]:
        """The listen address as host and port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


@dataclass(frozen=True)
class ServiceSettings:
    """What to serve, and how much to log."""

    log: str
    chaincodes: tuple[Entry, ...]

    @classmethod
    def from_file(cls, path: Path) -> "ServiceSettings":
        """Read and check the file, and the key and certificate files it names."""
        try:
            found = json.loads(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"{path} is not JSON") from error
        try:
            return cls._from_dict(found, path.parent)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from None

    @classmethod
    def _from_dict(cls, found: Any, folder: Path) -> "ServiceSettings":
        _check_names(found, "the file", {"chaincodes"}, {"log"})
        level = found.get("log", "info")
        if level not in LEVELS:
            raise SettingsError(f"log must be one of {', '.join(LEVELS)}")
        listed = found["chaincodes"]
        if not isinstance(listed, list) or not listed:
            raise SettingsError("chaincodes must be a list of at least one chaincode")
        entries = tuple(_entry(item, f"chaincodes[{index}]", folder) for index, item in enumerate(listed))
        for what in ("name", "id", "listen"):
            values = [getattr(entry, what) for entry in entries]
            if len(set(values)) != len(values):
                raise SettingsError(f"two chaincodes have the same {what}")
        return cls(level, entries)


def _entry(found: Any, where: str, folder: Path) -> Entry:
    _check_names(found, where, {"name", "id", "listen", "tls"}, set())
    for name in ("name", "id", "listen"):
        if not isinstance(found[name], str) or not found[name]:
            raise SettingsError(f"{where}.{name} must be text")
    if found["name"] not in CONTRACTS:
        raise SettingsError(f"{where}.name must be one of {', '.join(CONTRACTS)}")
    host, _, port = found["listen"].rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SettingsError(f"{where}.listen must be HOST:PORT")
    if found["tls"] is None and not _is_loopback(host):
        raise SettingsError(f"{where}.tls may be null only when listening on a loopback address")
    tls = None if found["tls"] is None else _tls(found["tls"], f"{where}.tls", folder)
    return Entry(found["name"], found["id"], found["listen"], tls)


def _tls(found: Any, where: str, folder: Path) -> TlsFiles:
    _check_names(found, where, {"key", "cert", "client_ca"}, set())
    return TlsFiles(*(_read(found[name], f"{where}.{name}", folder) for name in ("key", "cert", "client_ca")))


def _read(name: Any, where: str, folder: Path) -> bytes:
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{where} must be the path of a PEM file")
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise SettingsError(f"{where}: cannot read {folder / name}: {error.strerror}") from error
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{where}: {folder / name} is not PEM")
    return content


def _check_names(found: Any, where: str, needed: set[str], allowed: set[str]) -> None:
    if not isinstance(found, dict):
        raise SettingsError(f"{where} must be a JSON object")
    missing, unknown = needed - found.keys(), found.keys() - needed - allowed
    if missing:
        raise SettingsError(f"{where} lacks {', '.join(sorted(missing))}")
    if unknown:
        raise SettingsError(f"{where} has unknown {', '.join(sorted(unknown))}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
