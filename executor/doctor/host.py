"""Checks of the host: programs, engine, disk."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version

from executor.doctor.finding import Finding
from executor.engine import asking, describe, engine, keeps_manifests
from executor.errors import EngineError, SandboxError
from executor.network import ROOT
from executor.sandbox.support import check_engine

PACKAGES = ("attestree", "numpy", "scikit-learn", "joblib", "cryptography", "grpcio", "docker")
FREE_BYTES = 3_000_000_000
PROXIES = tuple(
    variant for name in ("http_proxy", "https_proxy", "all_proxy") for variant in (name, name.upper())
)


def check_host() -> Iterator[Finding]:
    """Check what every command needs, the engine last."""
    yield _python()
    yield _packages()
    yield _disk()
    yield _proxies()
    yield _engine()
    yield _compose()


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("python", ok, platform.python_version(), "" if ok else "install Python 3.11 or newer")


def _packages() -> Finding:
    try:
        found = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    except PackageNotFoundError as error:
        return Finding("packages", False, f"{error.name} is not installed", "run scripts/bootstrap")
    return Finding("packages", True, found)


def _disk() -> Finding:
    free = shutil.disk_usage(ROOT).free
    ok = free >= FREE_BYTES
    return Finding("disk", ok, f"{free / 1e9:.1f} GB free", "" if ok else "free at least 3 GB")


def _proxies() -> Finding:
    """Name the proxies of this environment; peers and registry are reached without them."""
    named = [name for name in PROXIES if os.environ.get(name)]
    detail = f"{', '.join(named)}: for downloads, not for peers and registry" if named else "none"
    return Finding("proxies in the environment", True, detail)


def _engine() -> Finding:
    try:
        with closing(engine()) as client:
            with asking("say its version"):
                found = str(client.version()["Version"])
            described = describe(client)
            store = "containerd's" if keeps_manifests(client, described) else "the classic"
            check_engine(client, described=described)
    except (EngineError, SandboxError) as error:
        return Finding("docker engine", False, error.cause, error.remedy)
    return Finding("docker engine", True, f"{found}, images in {store} store")


def _compose() -> Finding:
    try:
        ran = subprocess.run(
            ["docker", "compose", "version", "--short"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("docker compose", False, str(error), "run scripts/bootstrap")
    return Finding("docker compose", True, ran.stdout.strip())
