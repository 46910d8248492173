"""What a machine lacks is put in place once, by however many scripts at once."""

from support.scripted_engine import Engine

# The engine starts only after both scripts have found that there is none.
START = """
. network/lib/common.sh
. network/lib/prerequisites.sh
engine_answers() { touch "$FOLDER/asked-$CALLER"; [ -e "$FOLDER/up" ]; }
both_asked() { [ -e "$FOLDER/asked-first" ] && [ -e "$FOLDER/asked-second" ]; }
start_engine() {
  eventually 150 "both have asked" both_asked
  echo "$CALLER" >>"$FOLDER/starts"
  touch "$FOLDER/up"
}
command() { [ "$*" = "-v dockerd" ] || builtin command "$@"; }
docker_engine
"""


def test_engine_is_started_once_by_two_scripts_at_once(engine: Engine) -> None:
    script = f"FOLDER={engine.folder}\n" + START
    starts = [
        engine.start("bash", "-euc", f"CALLER={name}\n" + script, caller=name) for name in ("first", "second")
    ]
    for start in starts:
        out, err = start.communicate(timeout=150)
        assert (start.returncode, out) == (0, ""), err
    assert len((engine.folder / "starts").read_text().split()) == 1
