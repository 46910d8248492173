"""Run one task: `python -m learner [DIRECTORY]`, the key on standard input (docs/formats/broker-v1.md)."""

import gc
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from learner.outcome import Exit, StopError

DIRECTORY = Path("/attestree")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def main(arguments: list[str]) -> Exit:
    """Run the task and return how it ended."""
    # Read when numpy is imported. One thread adds up in one order, whatever machine this is.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        with loading():
            from learner.key import standard_input  # noqa: PLC0415
            from learner.run import run_task  # noqa: PLC0415

        directory = Path(arguments[0]) if arguments else DIRECTORY
        run_task(directory, standard_input(), say, hang_up)
    except StopError as stop:
        say(stop.words)
        return stop.exit_code
    except BaseException as error:
        say(f"internal error: {place(error)}")
        return Exit.INTERNAL
    return Exit.DONE


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage meanwhile: what is loaded stays, and looking costs a twelfth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # nor is it looked through later on
        gc.enable()


def say(words: str) -> None:
    """Tell the operator: ids and sizes, never values."""
    print(f"learner: {words}", file=sys.stderr, flush=True)  # noqa: T201


def place(error: BaseException) -> str:
    """Name the kind and the place of an error; its message could hold a value of a row, or a key."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:]]
    return f"{type(error).__name__} at {' > '.join(where)}"


def hang_up() -> NoReturn:
    """End at once: the broker is gone, so nobody will ever take the result."""
    say("the broker hung up")
    os._exit(Exit.BROKER)


if __name__ == "__main__":
    # At once: everything is said and sent, and taking the packages down would cost as much as a small FIT.
    os._exit(main(sys.argv[1:]))
