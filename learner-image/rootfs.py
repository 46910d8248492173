"""Gather what an image needs into one directory: interpreter, standard library, packages, their libraries.

Runs inside the build of the image, as `python rootfs.py TARGET USER`, with the interpreter it gathers.
"""

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from py_compile import PycInvalidationMode

USER = 10001
ENVIRONMENT = Path(sys.prefix)
LIBRARY = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
INTERPRETER = Path(sys.executable).resolve()

# Parts of the standard library that no image has a use for: other programs, screens, databases, installers.
UNUSED = (
    "__pycache__", "test", "tests", "idle_test", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip",
    "lib2to3", "pydoc_data", "sqlite3", "dbm", "curses", "venv", "site-packages", "dist-packages",
    "_sqlite3.*.so", "_dbm.*.so", "_gdbm.*.so", "_curses*.so", "readline.*.so", "_tkinter.*.so", "_test*.so",
    "config-*",
)  # fmt: skip
# Of the packages: their tests, and what only compilers and type checkers read.
UNREAD = (
    "__pycache__",
    "tests",
    "test",
    "*.pyi",
    "*.pxd",
    "*.pyx",
    "*.h",
    "*.hpp",
    "*.c",
    "*.cpp",
    "*.a",
    "*.tp",
    "*.build",
)


def main(target: Path, user: str) -> None:
    """Copy interpreter and packages, then the libraries they load, then compile."""
    lay_out(target, user)
    copy(INTERPRETER, target)
    copy_tree(LIBRARY, target, UNUSED)
    copy_tree(ENVIRONMENT, target, (*UNREAD, "include", "share"))
    link_interpreter(target)
    for library in sorted(needed(target)):
        copy(library, target)
    for settings in sorted(Path("/etc").glob("ld.so.conf*")):
        shutil.copytree(settings, target / "etc" / settings.name) if settings.is_dir() else copy(
            settings, target
        )
    subprocess.run(["ldconfig", "-r", target], check=True)
    shutil.rmtree(target / "var", ignore_errors=True)
    compile_all(target)


def lay_out(target: Path, user: str) -> None:
    """Make the directories and the links of the host's file system, and the one user."""
    for name in ("etc", "tmp", "attestree", "usr/bin", "usr/lib"):
        (target / name).mkdir(parents=True)
    (target / "tmp").chmod(0o1777)
    for link in ("lib", "lib64", "bin", "sbin"):
        if Path("/", link).is_symlink():
            (target / "usr" / link).mkdir(exist_ok=True)
            (target / link).symlink_to(f"usr/{link}")
    (target / "etc/passwd").write_text(f"{user}:x:{USER}:{USER}::/nonexistent:/nonexistent\n")
    (target / "etc/group").write_text(f"{user}:x:{USER}:\n")


def copy(path: Path, target: Path) -> None:
    """Copy a file under the path it has, and keep it a file: what its links point to is here as well."""
    destination = target / path.parent.resolve().relative_to("/") / path.name
    destination.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, destination)
    destination.chmod(0o755)


def copy_tree(source: Path, target: Path, unused: tuple[str, ...]) -> None:
    """Copy a directory without what is not used."""
    destination = target / source.relative_to("/")
    shutil.copytree(source, destination, symlinks=True, ignore=shutil.ignore_patterns(*unused))


def link_interpreter(target: Path) -> None:
    """Leave of the environment's programs the interpreter alone."""
    programs = target / ENVIRONMENT.relative_to("/") / "bin"
    shutil.rmtree(programs)
    programs.mkdir()
    (programs / "python").symlink_to(INTERPRETER)


def needed(target: Path) -> set[Path]:
    """List the system's libraries that the interpreter and every extension load, and the loader."""
    programs = [target / INTERPRETER.relative_to("/"), *target.rglob("*.so"), *target.rglob("*.so.*")]
    found = set()
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for path in re.findall(r"(?:=> )?(/\S+) \(0x", said):
            resolved = Path(os.path.normpath(path))
            if target not in resolved.parents:
                found.add(resolved)
    return found


def compile_all(target: Path) -> None:
    """Write byte code that is never compared with times: the image has none, and cannot be written."""
    compiled = compileall.compile_dir(
        target,
        maxlevels=50,
        quiet=1,
        stripdir=target,
        prependdir="/",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    if not compiled:
        sys.exit("some modules do not compile")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
