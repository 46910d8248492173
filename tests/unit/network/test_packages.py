"""What `scripts/bootstrap` installs or names on each distribution, and what it says of other engines."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("python", "compiler", "engine", "compose", "debootstrap")
KNOWN = {
    'ID=debian\nVERSION_ID="12"\n': (
        "python3 python3-venv", "gcc libc6-dev python3-dev", "docker.io iptables", "", "debootstrap",
    ),
    'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n': (
        "python3 python3-venv", "gcc libc6-dev python3-dev", "docker.io docker-cli iptables",
        "docker-compose", "debootstrap",
    ),
    'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n': (
        "python3.11 python3.11-venv", "gcc libc6-dev python3.11-dev", "docker.io iptables",
        "docker-compose-v2", "debootstrap debian-archive-keyring",
    ),
    'VERSION_ID="24.04"\nID=ubuntu\n': (
        "python3 python3-venv", "gcc libc6-dev python3-dev", "docker.io iptables", "docker-compose-v2",
        "debootstrap debian-archive-keyring",
    ),
    'ID="fedora"\nVERSION_ID=42\n': ("", "", "", "", ""),
}  # fmt: skip
DOCKER = """#!/bin/bash
case "$1 $2 $3" in
  --version*) echo "$DOCKER_IS" ;;
  *APIVersion*) echo "$API" ;;
  version*) echo "$COMPONENTS" ;;
  info*) echo "$INFO" ;;
esac
"""
FIT = "Debian GNU/Linux 13 (trixie)|true true true true|[[Backing Filesystem extfs]]"
CONTAINERD = "Ubuntu 24.04|true true true true|[[driver-type io.containerd.snapshotter.v1]]"


def shell(
    script: str, folder: Path, release: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    (folder / "os-release").write_text(release)
    parts = " ".join(f". network/lib/{part}.sh;" for part in ("common", "packages", "tools", "prerequisites"))
    return subprocess.run(
        ["bash", "-euc", f"{parts} {script}"],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "ATTESTREE_OS_RELEASE": str(folder / "os-release"),
            **environment,
        },
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("release", "expected"), KNOWN.items(), ids=lambda value: str(value)[:24])
def test_the_packages_of_each_distribution(release: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    ran = shell(f"for part in {' '.join(PARTS)}; do echo $(packages $part); done", tmp_path, release)
    assert ran.stdout.split("\n")[: len(PARTS)] == list(expected)


@pytest.mark.parametrize("user", [0, 1000])
def test_what_root_installs_a_user_is_told_to_have_installed(user: int, tmp_path: Path) -> None:
    for name, text in {"id": f"echo {user}", "apt-get": f'echo "$@" >>{tmp_path}/asked'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    ran = shell(
        'install_packages engine "the Docker engine" Docker', tmp_path, 'ID=debian\nVERSION_ID="13"\n'
    )
    asked = tmp_path / "asked"
    if user == 0:
        assert ran.returncode == 0
        assert asked.read_text().splitlines() == [
            "update",
            "install --yes --no-install-recommends docker.io docker-cli iptables",
        ]
    else:
        assert ran.returncode == 1
        assert "remedy: sudo apt-get install docker.io docker-cli iptables" in ran.stderr
        assert not asked.exists()


def test_another_distribution_is_told_what_to_look_for(tmp_path: Path) -> None:
    ran = shell(
        'install_packages engine "the Docker engine" "Docker 20.10"', tmp_path, "ID=fedora\nVERSION_ID=42\n"
    )
    assert ran.returncode == 1
    assert "this is 'fedora 42'" in ran.stderr
    assert "install: Docker 20.10" in ran.stderr


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"INFO": FIT}, ""),
        ({"INFO": CONTAINERD, "API": "1.45"}, ""),
        ({"INFO": CONTAINERD, "API": "1.52"}, ""),
        ({"INFO": CONTAINERD, "API": "1.44"}, "older than Docker 26"),
        ({"INFO": FIT.replace("Debian GNU/Linux 13 (trixie)", "Docker Desktop")}, "virtual machine"),
        ({"INFO": FIT.replace("true true true true", "true false true true")}, "does not limit"),
        ({"DOCKER_IS": "podman version 4.3.1"}, "this is Podman"),
        ({"INFO": FIT, "COMPONENTS": "Podman Engine,Conmon,"}, "this is Podman"),
    ],
)
def test_an_engine_that_does_not_suit_is_told_with_its_reason(
    engine: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    silent = {
        "DOCKER_IS": "Docker version 29.1.3",
        "COMPONENTS": "Engine,containerd,runc,",
        "API": "",
        "INFO": "",
    }
    ran = shell("engine_suits", tmp_path, **silent | engine)
    assert (ran.returncode == 0, said in ran.stdout) == (said == "", True), ran
    assert said or not ran.stdout
