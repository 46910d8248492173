"""The exit codes of the learner's container: what they tell the executor (docs/formats/broker-v1.md)."""

from enum import IntEnum


class LearnerExit(IntEnum):
    """How a learner ends: one exit code per outcome."""

    DONE = 0
    TASK = 64
    """The task, its parameters or its opening cannot be used."""
    ROWS = 65
    """The rows cannot be used."""
    STATE = 66
    """The state does not fit the task."""
    TREES = 67
    """The offered trees are refused."""
    BROKER = 68
    """The broker is gone, speaks another protocol, or answered with an error."""
    KEY = 69
    """The key is missing, short, long or not the opening's."""
    INTERNAL = 70
    """An error of the learner itself."""

    @classmethod
    def meaning_of(cls, code: int) -> str:
        """Say what an exit code means, also one that no learner of ours ends with."""
        return _MEANINGS.get(code, "it failed")


_MEANINGS: dict[int, str] = {
    LearnerExit.TASK: "it could not use the task or its parameters",
    LearnerExit.ROWS: "it could not use the rows",
    LearnerExit.STATE: "the state did not fit the task",
    LearnerExit.TREES: "it refused the trees it was offered",
    LearnerExit.BROKER: "the broker was gone or refused it",
    LearnerExit.KEY: "it could not use its key",
    LearnerExit.INTERNAL: "it failed within",
}
