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


def test_a_registry_cannot_serve_another_official_image_after_the_first_pull(tmp_path: Path) -> None:
    first, other = "sha256:" + "a" * 64, "sha256:" + "b" * 64
    (tmp_path / "docker").write_text(HUB)
    (tmp_path / "docker").chmod(0o755)
    for name in ("names", "pulled"):
        (tmp_path / name).touch()
    for served in (first, other):  # the second time the engine has lost it, and the tag was moved
        (tmp_path / "served").write_text(f"{served}\n")
        (tmp_path / "names").write_text("")
        subprocess.run(
            ["bash", "-euc", ". network/lib/common.sh; . network/lib/images.sh; official python:3.11"],
            cwd=ROOT,
            env={
                "PATH": f"{tmp_path}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "ATTESTREE_CACHE": str(tmp_path),
            },
            check=True,
            timeout=60,
        )
        assert (tmp_path / "has").read_text().strip() == first
        assert "python:3.11" in (tmp_path / "names").read_text().split()
    assert (tmp_path / "pulled").read_text().split() == ["python:3.11", f"python@{first}"]
