"""Compares a Debian root, as a tar file, with the packages that the project's images are locked to.

    python debian_lock.py ARCHIVE [LOCK]

Prints a line per package: its name, its version, and the SHA-256 over the names and contents of its files in
their order. With LOCK it prints what differs instead, and exits with 1 if anything does. Files that an
installation writes by itself (configuration, logs, caches) belong to no package's list or are left out, so
two roots of the same packages are the same, whenever and wherever they were made.
"""

import hashlib
import re
import sys
import tarfile
from pathlib import Path

STATUS = "var/lib/dpkg/status"
LIST = re.compile(r"var/lib/dpkg/info/([a-z0-9.+-]+)(?::[a-z0-9]+)?\.list")
WRITTEN = ("etc/", "var/", "run/", "usr/share/doc/", "usr/share/man/", "usr/share/locale/")
"""Where hosts write or leave out files of packages, and what no image of ours holds."""


def packages(archive: str) -> dict[str, tuple[str, str]]:
    """Return version and digest of every package of a root, by name."""
    digests: dict[str, str] = {}
    links: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    status = ""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if member.issym():
                links[name] = member.linkname
            elif member.islnk():
                # Which of a file's names an archive has as the file itself is chance.
                digests[name] = digests.get(member.linkname.removeprefix("./"), "")
            elif member.isfile() and (file := tar.extractfile(member)) is not None:
                raw = file.read()
                digests[name] = hashlib.sha256(raw).hexdigest()
                if name == STATUS:
                    status = raw.decode()
                elif found := LIST.fullmatch(name):
                    lists[found[1]] = raw.decode().split("\n")
    versions = dict(re.findall(r"^Package: (\S+)$(?:\n.+)*?\nVersion: (\S+)$", status, re.MULTILINE))
    made = {}
    for package in sorted(versions):
        whole = hashlib.sha256()
        for path in sorted(lists.get(package, [])):
            name = _real(path.lstrip("/"), links)
            if name.startswith(WRITTEN):
                continue
            content = digests.get(name) or links.get(name)
            if content is not None:
                whole.update(f"{name} {content}\n".encode())
        made[package] = (versions[package], f"sha256:{whole.hexdigest()}")
    return made


def _real(name: str, links: dict[str, str]) -> str:
    """Follow the links of a merged /usr: /bin is /usr/bin."""
    top, slash, rest = name.partition("/")
    return f"{links[top].lstrip('/')}/{rest}" if slash and top in links else name


def lines(found: dict[str, tuple[str, str]]) -> list[str]:
    """Return a line per package."""
    return [f"{name} {version} {digest}" for name, (version, digest) in found.items()]


def main(arguments: list[str]) -> int:
    """Print the packages of a root, or how it differs from the locked ones."""
    found = lines(packages(arguments[0]))
    if len(arguments) == 1:
        print("\n".join(found))
        return 0
    lock = Path(arguments[1]).read_text(encoding="utf-8").splitlines()
    locked = [line for line in lock if line and not line.startswith("#")]
    different = sorted({*found} ^ {*locked})
    for line in different:
        print(("here:   " if line in found else "locked: ") + line)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
