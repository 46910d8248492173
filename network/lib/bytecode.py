"""Compile an environment's packages, and keep the byte code where the next clone's environment finds it.

usage: bytecode.py SITE_PACKAGES STORE

Packages come as links to one cache, with one time of change, so that byte code made for one clone holds for
another. Python compares that time itself: what is stale is compiled again, here or at its import.
"""

import compileall
import os
import shutil
import sys
from pathlib import Path


def main(site: Path, store: Path) -> None:
    """Take what the store has, compile what it lacks, and give that to the store."""
    found = store.is_dir()
    link_bytecode(store, site)
    # On all processors, unless there is little to do. Nothing is said of what is no Python of this version.
    compileall.compile_dir(site, maxlevels=100, quiet=2, workers=1 if found else 0)
    link_bytecode(site, store)


def link_bytecode(source: Path, target: Path) -> None:
    """Let every compiled file of one tree be in the other too, in place of another one if need be."""
    for folder, _, names in os.walk(source):
        if Path(folder).name == "__pycache__":
            place = target / Path(folder).relative_to(source)
            for name in names:
                _link(Path(folder, name), place / name)


def _link(file: Path, place: Path) -> None:
    if place.exists() and place.samefile(file):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    made = place.with_name(f"{file.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    try:
        made.hardlink_to(file)
    except OSError:  # the two are on different disks
        shutil.copy2(file, made)
    made.replace(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
