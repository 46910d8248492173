"""The lock of the base image's Debian packages: the same packages are the same, one byte of one is not."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "network/lib/debian_lock.py"
STATUS = "Package: one\nStatus: ok\nVersion: 1.0-1\n\nPackage: two\nVersion: 2:3+b1\n"
FILES = {
    "./var/lib/dpkg/status": STATUS,
    "./var/lib/dpkg/info/one.list": "/.\n/bin/program\n/etc/one.conf\n",
    "./var/lib/dpkg/info/two:amd64.list": "/usr/lib/libtwo.so\n",
    "./usr/bin/program": "program",
    "./usr/lib/libtwo.so": "library",
    "./etc/one.conf": "as the host likes",
}


def archive(path: Path, files: dict[str, str], time: int = 0) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("./bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(link)
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), time
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def run(*arguments: Path) -> tuple[int, list[str]]:
    ran = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.splitlines()


def test_the_same_packages_in_another_order_and_time_are_the_locked_ones(tmp_path: Path) -> None:
    code, printed = run(archive(tmp_path / "one.tar.gz", FILES))
    assert code == 0
    assert [line.split()[:2] for line in printed] == [["one", "1.0-1"], ["two", "2:3+b1"]]
    lock = tmp_path / "lock"
    lock.write_text("# a note\n" + "\n".join(printed) + "\n")
    again = dict(reversed(FILES.items())) | {"./etc/one.conf": "otherwise", "./var/log/x": "noise"}
    assert run(archive(tmp_path / "two.tar.gz", again, time=99), lock) == (0, [])


@pytest.mark.parametrize("first", ["./usr/bin/program", "./usr/bin/other"])
def test_which_of_two_names_of_a_file_is_the_link_does_not_matter(tmp_path: Path, first: str) -> None:
    both = ("./usr/bin/program", "./usr/bin/other")
    files = FILES | {"./var/lib/dpkg/info/one.list": "/bin/program\n/bin/other\n", both[1]: "program"}
    _, printed = run(archive(tmp_path / "apart.tar.gz", files))
    lock = tmp_path / "lock"
    lock.write_text("\n".join(printed) + "\n")
    with tarfile.open(tmp_path / "linked.tar", "w") as tar:
        for name, text in files.items():
            if name in both:
                continue
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        top = tarfile.TarInfo("./bin")
        top.type, top.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(top)
        whole = tarfile.TarInfo(first)
        whole.size = len("program")
        tar.addfile(whole, io.BytesIO(b"program"))
        link = tarfile.TarInfo(both[1] if first == both[0] else both[0])
        link.type, link.linkname = tarfile.LNKTYPE, first
        tar.addfile(link)
    assert run(tmp_path / "linked.tar", lock) == (0, [])


@pytest.mark.parametrize("name", ["./usr/bin/program", "./usr/lib/libtwo.so"])
def test_one_byte_of_a_package_is_another_base(tmp_path: Path, name: str) -> None:
    _, printed = run(archive(tmp_path / "one.tar.gz", FILES))
    lock = tmp_path / "lock"
    lock.write_text("\n".join(printed) + "\n")
    code, different = run(archive(tmp_path / "two.tar.gz", FILES | {name: "prograM"}), lock)
    assert code == 1
    assert sorted(line.split()[0] for line in different) == ["here:", "locked:"]
    assert len({line.split()[1] for line in different}) == 1


def test_the_lock_that_ships_has_the_interpreter() -> None:
    lines = (ROOT / "network/debian-x86_64.lock").read_text(encoding="utf-8").splitlines()[1:]
    assert any(line.startswith("python3.11-minimal 3.11.") for line in lines)
    assert all(len(line.split()) == 3 for line in lines)
