"""A learner that does what learners must not: which of it, the first value of its rows says.

It takes the place of the learner's `__main__` in an image that is honest otherwise. The test reads BEHAVIOURS
from this file, so only the standard library is imported here.
"""

import os
import struct
import sys
from pathlib import Path

DIRECTORY = Path("/attestree")
OTHER_KEY = bytes(range(32))


def main():
    raw = (DIRECTORY / "rows").read_bytes()
    # rows-v1: version, rows, features, then the values.
    number = struct.unpack_from("<f", raw, struct.calcsize("<BIH"))[0]
    sys.exit(list(BEHAVIOURS.values())[int(number)]())


def say(words):
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def honest():
    from learner.key import standard_input
    from learner.run import run_task

    run_task(DIRECTORY, standard_input(), say, lambda: os._exit(68))


def leave_without_a_result():
    say("all is well")


def fail_after_sharing():
    from learner import run as steps

    steps.ask_slots = lambda broker, task: os._exit(9)
    honest()


def eat_memory():
    eaten = []
    while True:
        eaten.append(bytearray(b"\x01") * (8 << 20))


def loop():
    while True:
        pass


def sign_with_another_key():
    from learner.task import Task
    from protocol.signing import SigningKey
    from protocol.task.opening import statement
    from protocol.task.statement import sign_statement

    def sign(task, key, action, payload):
        return sign_statement(SigningKey(OTHER_KEY), statement(task.id, task.opening, action, payload))

    Task.sign = sign
    honest()


def send_noise():
    import socket

    with socket.socket(socket.AF_UNIX) as broker:
        broker.connect(str(DIRECTORY / "broker.sock"))
        broker.sendall(b"\x07" + os.urandom(64))
        broker.recv(1 << 16)
    return 9


def _share_instead(make):
    """Share what `make` makes of the honest share, signed as it should be."""
    from learner import run as steps
    from protocol.broker.messages import Request, Verb
    from protocol.digest import Digest
    from protocol.task.statement import Action

    def share(broker, task, key, share):
        raw = make(task, share)
        broker.ask(Request(Verb.SHARE, task.sign(key, Action.SHARE, Digest.of(raw)), (raw,)))
        return len(raw)

    steps._share = share
    honest()


def share_a_pickle():
    import pickle

    def make(task, share):
        name, tree = task.id.node.encode(), pickle.dumps(share.ids)
        entry = bytes([len(name)]) + name + struct.pack("<II", 0, len(tree)) + tree
        return struct.pack("<BH", 1, 1) + entry

    _share_instead(make)


def share_under_a_forged_name():
    from protocol.identifiers import EstimatorId
    from protocol.trees.estimator import Estimator
    from protocol.trees.share import Share

    def make(task, share):
        return Share((Estimator(EstimatorId(task.neighbours[0], 0), share.estimators[0].tree),)).to_bytes()

    _share_instead(make)


def share_too_much():
    from protocol.identifiers import EstimatorId
    from protocol.trees.estimator import Estimator
    from protocol.trees.share import Share

    def make(task, share):
        tree = share.estimators[0].tree
        return Share(tuple(Estimator(EstimatorId(task.id.node, i), tree) for i in range(9))).to_bytes()

    _share_instead(make)


def _result_instead(make):
    """Complete with what `make` makes of the honest result and state."""
    from learner import run as steps

    honest_result = steps._result
    steps._result = lambda *given: make(*honest_result(*given))
    honest()


def keep_another_state():
    from dataclasses import replace

    from protocol.task.state import StateRecord
    from protocol.trees.limits import TreeLimits

    def later(raw):
        state = StateRecord.from_bytes(raw, TreeLimits(5, format=2))
        return replace(state, iteration=state.iteration + 1).to_bytes()

    _result_instead(lambda result, state: (result, later(state)))


def take_from_nobody():
    from dataclasses import replace

    from protocol.digest import Digest
    from protocol.task.result import SlotRead

    slot = SlotRead("node01", 0, Digest.of(b"never offered"), ())
    _result_instead(lambda result, state: (replace(result, slots=(slot,)), state))


def reach_out():
    """Try every door; say which opened, and end with 42 if none did."""
    import socket

    def connect(family, address):
        with socket.socket(family) as made:
            made.settimeout(2)
            made.connect(address)

    doors = {
        "internet": lambda: connect(socket.AF_INET, ("1.1.1.1", 443)),
        "host": lambda: connect(socket.AF_INET, ("172.17.0.1", 22)),
        "names": lambda: socket.getaddrinfo("peer.org1", 7051),
        "engine": lambda: connect(socket.AF_UNIX, "/var/run/docker.sock"),
        "root": lambda: Path("/written").write_bytes(b"x"),
        "code": lambda: Path("/opt/venv/written").write_bytes(b"x"),
        "rows": lambda: (DIRECTORY / "rows").open("r+b"),
        "another place for the socket": (DIRECTORY / "broker.sock").unlink,
        "disk": lambda: Path("/tmp/filler").write_bytes(bytes(64 << 20)),
        "processes": lambda: _fork(1000),
        "root's identity": lambda: os.setuid(0),
        "devices": lambda: os.mknod("/tmp/device", 0o600 | 0o020000, os.makedev(1, 1)),
    }
    opened = []
    for name, door in doors.items():
        try:
            door()
            opened.append(name)
        except OSError as error:
            say(f"{name}: {type(error).__name__}")
    say(f"doors tried: {len(doors)}, open: {', '.join(opened) or 'none'}")
    return 43 if opened else 42


def _fork(most):
    """Fork so many sleeping children, and end them whatever came of it."""
    import signal

    children = []
    try:
        for _ in range(most):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def flood_the_log():
    line = b"\x1b[31mprivate row 4711\x00 e\xcc\x81 " + b"z" * 4000 + b"\n"
    with open(2, "wb", buffering=0, closefd=False) as log:
        for _ in range(2500):
            log.write(line)
    return 7


def ask_in_words_of_its_own():
    import socket

    from protocol.broker import frames

    with socket.socket(socket.AF_UNIX) as broker:
        broker.connect(str(DIRECTORY / "broker.sock"))
        broker.sendall(frames.encode({"verb": "private row 4711", "fields": {}}))
        broker.recv(1 << 16)
    return 9


def strand_its_node():
    """Sign a state, properly, that no later task can start from."""
    from dataclasses import replace

    from protocol.task.state import StateRecord
    from protocol.trees.limits import TreeLimits

    def stranded(result, raw):
        state = replace(StateRecord.from_bytes(raw, TreeLimits(5, format=2)), iteration=1000)
        return replace(result, state=state.digest), state.to_bytes()

    _result_instead(stranded)


BEHAVIOURS = {
    "honest": honest,
    "leaves without a result": leave_without_a_result,
    "fails after sharing": fail_after_sharing,
    "eats memory": eat_memory,
    "loops": loop,
    "signs with another key": sign_with_another_key,
    "sends noise": send_noise,
    "shares a pickle": share_a_pickle,
    "shares under a forged name": share_under_a_forged_name,
    "shares too much": share_too_much,
    "keeps another state": keep_another_state,
    "takes from nobody": take_from_nobody,
    "reaches out": reach_out,
    "floods the log": flood_the_log,
    "asks in words of its own": ask_in_words_of_its_own,
    "strands its node": strand_its_node,
}

if __name__ == "__main__":
    main()
