"""What `scripts/bootstrap` installs or names on each distribution, and what it says of other engines."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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
  *Components*) echo "$COMPONENTS" ;;
  version*) echo 29.1.3 ;;
  info*) echo "$INFO" ;;
esac
"""
# Debian's podman-docker 4.3.1, as it answered without any service of Podman's.
PODMANS_DOCKER = """#!/bin/bash
echo "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg." >&2
case "$*" in
  --version) echo "podman version 4.3.1" ;;
  "version --format {{.Server.Version}}") echo 4.3.1 ;;
  compose*) echo 'Error: unrecognized command `podman compose`' >&2; exit 125 ;;
  *) echo "Error: template: can't evaluate field in type *define.Info" >&2; exit 125 ;;
esac
"""
INSTALL = "install --yes --no-install-recommends"
LIMITS = "linux true true true true"
SECCOMP = "[name=seccomp,profile=builtin name=cgroupns]"
FIT = f"Debian GNU/Linux 13 (trixie)|{LIMITS}|{SECCOMP}|[[Backing Filesystem extfs]]"
CONTAINERD = f"Ubuntu 24.04|{LIMITS}|{SECCOMP}|[[driver-type io.containerd.snapshotter.v1]]"
OLD = FIT.replace("13 (trixie)", "12 (bookworm)").replace("builtin", "default")


def shell(
    script: str, folder: Path, release: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    (folder / "os-release").write_text(release)
    parts = " ".join(f". network/lib/{part}.sh;" for part in ("common", "packages", "prerequisites"))
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
        timeout=150,
        check=False,
    )


def bootstrap(
    option: str, folder: Path, release: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `scripts/bootstrap` itself, with what is in the folder before all else on PATH."""
    return shell(f"exec scripts/bootstrap {option}", folder, release, **environment)


def put(folder: Path, name: str, text: str) -> None:
    """Put a program there that stands in for the machine's own."""
    (folder / name).write_text(text if text.startswith("#!") else f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(("release", "expected"), KNOWN.items(), ids=lambda value: str(value)[:24])
def test_the_packages_of_each_distribution(release: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    ran = shell(f"for part in {' '.join(PARTS)}; do echo $(packages $part); done", tmp_path, release)
    assert ran.stdout.split("\n")[: len(PARTS)] == list(expected)


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("release", [release for release in KNOWN if "fedora" not in release])
def test_what_root_installs_a_user_is_told_to_have_installed(release: str, user: int, tmp_path: Path) -> None:
    put(tmp_path, "id", f"echo {user}")
    put(tmp_path, "apt-get", f'echo "$@" >>{tmp_path}/asked')
    ran = shell(
        f'for part in {" ".join(PARTS)}; do install_packages $part "the part" elsewhere || true; done',
        tmp_path,
        release,
    )
    found, asked = [names for names in KNOWN[release] if names], tmp_path / "asked"
    assert ran.stderr.count("install: elsewhere") == len(PARTS) - len(found)
    if user == 0:
        expected = [line for names in found for line in ("update", f"{INSTALL} {names}")]
        assert asked.read_text().splitlines() == expected
    else:
        remedies = [line for line in ran.stderr.splitlines() if "remedy: sudo" in line]
        assert remedies == [f"  remedy: sudo apt-get install {names}" for names in found]
        assert not asked.exists()


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("release", KNOWN)
def test_a_bare_machine_is_told_by_the_check_what_to_type(release: str, user: int, tmp_path: Path) -> None:
    put(tmp_path, "id", f"echo {user}")
    for name in ("docker", "python3", "python3.13", "python3.12", "python3.11"):
        put(tmp_path, name, "exit 127")
    ran = bootstrap("--check", tmp_path, release)
    assert ran.returncode == 1
    sudo = "" if user == 0 else "sudo "
    python, compiler, engine, *_ = KNOWN[release]
    for row, names, otherwise in (
        ("Python 3.11 or newer", python, "Python 3.11 or newer with venv"),
        ("C compiler", compiler, "a C compiler and Python's headers"),
        ("Docker engine", engine, "Docker 20.10 or newer"),
    ):
        (said,) = [line for line in ran.stdout.splitlines() if line.startswith(f"✗ {row}: ")]
        wanted = f"{sudo}apt-get install {names}" if names else f"install {otherwise} by your system's means"
        assert f"Remedy: {wanted}" in said
    assert "✗ Docker Compose v2: " in ran.stdout


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
        ({"INFO": OLD}, ""),
        ({"INFO": CONTAINERD, "API": "1.45"}, ""),
        ({"INFO": CONTAINERD, "API": "1.52"}, ""),
        ({"INFO": CONTAINERD, "API": "1.44"}, "older than Docker 26"),
        ({"INFO": FIT.replace("Debian GNU/Linux 13 (trixie)", "Docker Desktop")}, "virtual machine"),
        ({"INFO": FIT.replace("true true true true", "true false true true")}, "does not limit"),
        ({"INFO": FIT.replace(SECCOMP, "[name=cgroupns]")}, "system calls"),
        ({"INFO": FIT.replace("builtin", "/etc/docker/open.json")}, "system calls"),
        ({"INFO": FIT, "COMPONENTS": "Podman Engine,Engine,"}, "this is Podman"),
    ],
)
def test_an_engine_that_does_not_suit_is_told_with_its_reason(
    engine: dict[str, str], said: str, tmp_path: Path
) -> None:
    put(tmp_path, "docker", DOCKER)
    silent = {
        "DOCKER_IS": "Docker version 29.1.3",
        "COMPONENTS": "Engine,containerd,runc,",
        "API": "",
        "INFO": "",
    }
    ran = shell("engine_suits || echo; docker_engine", tmp_path, **silent | engine)
    # The check prints it; what runs before a network is started says it, too, and goes on.
    assert (ran.returncode, said in ran.stdout, said in ran.stderr) == (0, True, True), ran
    assert (bool(ran.stdout), bool(ran.stderr)) == (bool(said), bool(said))


@pytest.mark.parametrize(
    ("docker", "said"), [(DOCKER, "this is Docker Desktop"), (PODMANS_DOCKER, "this is Podman")]
)
def test_the_check_has_a_row_for_an_engine_that_does_not_suit(docker: str, said: str, tmp_path: Path) -> None:
    put(tmp_path, "docker", docker)
    put(tmp_path, "python3", f'exec {sys.executable} "$@"')
    desktop = FIT.replace("Debian GNU/Linux 13 (trixie)", "Docker Desktop")
    ran = bootstrap("--check", tmp_path, DOCKER_IS="", COMPONENTS="", INFO=desktop)
    (row,) = [line for line in ran.stdout.splitlines() if "Docker engine that suits learners" in line]
    assert (ran.returncode, row[0], said in row) == (1, "✗", True)


def test_podman_s_docker_command_is_no_docker(tmp_path: Path) -> None:
    put(tmp_path, "docker", PODMANS_DOCKER)
    ran = shell("docker_engine", tmp_path, 'ID=debian\nVERSION_ID="13"\n')
    assert ran.returncode == 30
    assert "the docker command is Podman's" in ran.stderr
    assert "apt-get install docker.io docker-cli iptables, which replaces podman-docker" in ran.stderr


def test_a_machine_that_lacks_nothing_but_go_is_ready(tmp_path: Path) -> None:
    """The network's scripts get Go for themselves, where there is none that is new enough."""
    put(tmp_path, "docker", DOCKER)
    put(tmp_path, "python3", f'exec {sys.executable} "$@"')
    fit = {"DOCKER_IS": "", "COMPONENTS": "", "INFO": FIT, "ATTESTREE_CACHE": str(tmp_path)}
    without = ". <(grep -v '^main ' scripts/bootstrap); go_program() { return 1; }; report"
    ran = shell('exec bash -euc "$CHECK" scripts/bootstrap', tmp_path, CHECK=without, **fit)
    assert (ran.returncode, "✗" in ran.stdout) == (0, False), ran
    assert "· Go 1.24 or newer" in ran.stdout


def test_an_engine_that_gives_up_is_told_with_its_last_words(tmp_path: Path) -> None:
    log, starting = tmp_path / "dockerd.log", tmp_path / "starting"
    # Once an engine was started, the answer comes after its last words, however busy the machine is.
    spoken = f"[ ! -e {starting} ] || until [ -s {log} ]; do read -rt 0.05 <> <(:) || true; done"
    put(tmp_path, "docker", f"{spoken}; echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    put(tmp_path, "dockerd", "echo 'failed to start daemon: Devices cgroup is not mounted'")
    put(tmp_path, "id", "echo 0")
    put(tmp_path, "systemctl", f"dockerd >>{log}")
    script = f"ENGINE_LOG={log} ENGINE_SECONDS=1; clear_dead_engine() {{ touch {starting}; }}; docker_engine"
    ran = shell(script, tmp_path, DOCKER_HOST="", ATTESTREE_CACHE=str(tmp_path))
    assert ran.returncode == 30
    assert "does not answer within 1 s" in ran.stderr
    assert "cause:  failed to start daemon: Devices cgroup is not mounted" in ran.stderr
    assert str(log) in ran.stderr


def test_keys_of_an_archive_that_are_others_than_those_written_down_are_not_taken(tmp_path: Path) -> None:
    """Whoever serves the archive would otherwise choose whose signatures count."""
    (tmp_path / "keys.deb").write_bytes(b"the keys of somebody else")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        script = f"UBUNTU_KEYS=keys.deb; ubuntu_apt {tmp_path}/apt noble"
        mirror = f"http://127.0.0.1:{server.server_port}"
        # Whoever runs the tests may reach the world through a proxy, which is not the way to this host.
        ran = shell(script, tmp_path, ATTESTREE_UBUNTU_MIRROR=mirror, no_proxy="127.0.0.1")
        server.shutdown()
        thread.join()
    assert ran.returncode == 1
    assert "Hash Sum mismatch" in ran.stderr
    assert "or are others" in ran.stderr
    assert not (tmp_path / "apt" / "sources.list").exists()
