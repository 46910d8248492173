"""Scripts that need one image at once build it once: its tag must not move while one of them uses it."""

from support.scripted_engine import Engine

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
