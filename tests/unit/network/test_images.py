"""Scripts that need one image at once build it once: its tag must not move while one of them uses it."""

import subprocess
from pathlib import Path

from support.scripted_engine import ROOT, Engine

BUILD = ". network/lib/common.sh; . network/lib/images.sh; build_python_base"


def test_python_base_is_made_once_by_two_scripts_at_once(engine: Engine) -> None:
    cache = engine.folder / "cache"
    cache.mkdir()
    (cache / "python-3.11-bookworm.tar.gz").touch()
    builds = [engine.start("bash", "-euc", BUILD, caller=name) for name in ("first", "second")]
    for build in builds:
        out, err = build.communicate(timeout=150)
        assert (build.returncode, out) == (0, "attestree/python:3.11-bookworm\n"), err
    assert len(engine.get("imported").split()) == 1


HUB = """#!/bin/bash
# An engine with one image at a time: its tag leads to whatever digest the registry serves just now.
cd "$(dirname "$0")"
case "$1 $2" in
  "image inspect")
    if [ "$3" = --format ]; then echo "python@$(cat has)"; else grep -qx -- "$3" names; fi ;;
  "pull "*)
    echo "$2" >>pulled
    case $2 in *@*) echo "${2#*@}" >has ;; *) cat served >has ;; esac
    echo "$2" >names ;;
  "tag "*) echo "$3" >>names ;;
esac
"""


def obtain(folder: Path, image: str, served: str) -> None:
    """Make an official image available where the engine has none and the registry serves this digest."""
    (folder / "docker").write_text(HUB)
    (folder / "docker").chmod(0o755)
    (folder / "pulled").touch()
    (folder / "served").write_text(f"{served}\n")
    (folder / "names").write_text("")
    subprocess.run(
        ["bash", "-euc", f". network/lib/common.sh; . network/lib/images.sh; official {image}"],
        cwd=ROOT,
        env={"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), "ATTESTREE_CACHE": str(folder)},
        check=True,
        timeout=150,
    )


def test_a_registry_cannot_serve_another_official_image_where_its_digest_is_locked(tmp_path: Path) -> None:
    lines = (ROOT / "network/official-images.lock").read_text().splitlines()
    locked = dict(line.split() for line in lines if not line.startswith("#"))
    assert {"python:3.11-slim-bookworm", "registry:3.0.0"} <= locked.keys()
    for image, digest in locked.items():
        # Not even where an earlier version has noted another one on its first pull.
        (tmp_path / "official-images").write_text(f"{image} sha256:{'b' * 64}\n")
        obtain(tmp_path, image, "sha256:" + "b" * 64)
        assert (tmp_path / "has").read_text().strip() == digest
        assert image in (tmp_path / "names").read_text().split()
    assert (tmp_path / "pulled").read_text().split() == [
        f"{image.split(':')[0]}@{digest}" for image, digest in locked.items()
    ]


def test_a_registry_cannot_serve_another_official_image_after_the_first_pull(tmp_path: Path) -> None:
    first, other = "sha256:" + "a" * 64, "sha256:" + "b" * 64
    for served in (first, other):  # the second time the engine has lost it, and the tag was moved
        obtain(tmp_path, "python:3.11", served)
        assert (tmp_path / "has").read_text().strip() == first
        assert "python:3.11" in (tmp_path / "names").read_text().split()
    assert (tmp_path / "pulled").read_text().split() == ["python:3.11", f"python@{first}"]


def test_a_registry_that_lacks_one_official_image_does_not_stop_the_network(tmp_path: Path) -> None:
    lacking = HUB.replace('"pull "*)', '"pull "*) case $* in *python@*) exit 1 ;; esac')
    for hub, chosen in ((HUB, "official"), (lacking, "build")):
        (tmp_path / "docker").write_text(hub)
        (tmp_path / "docker").chmod(0o755)
        for name in ("served", "names"):
            (tmp_path / name).write_text("")
        found = subprocess.run(
            ["bash", "-euc", ". network/lib/common.sh; . network/lib/images.sh; choose_images auto"],
            cwd=ROOT,
            env={
                "PATH": f"{tmp_path}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "ATTESTREE_CACHE": str(tmp_path),
            },
            check=True,
            timeout=150,
            capture_output=True,
            text=True,
        )
        assert found.stdout.split() == [chosen], found.stderr
        assert ("serves python@sha256:" in found.stderr) == (chosen == "build")
