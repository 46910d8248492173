"""The task's private key: 32 bytes from standard input, once."""

from typing import Protocol

from learner.outcome import Exit, ends_with, need
from protocol.ed25519 import SIZE
from protocol.signing import SigningKey


class KeySource(Protocol):
    """An unbuffered stream, so that no second copy of what is read stays behind."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read some bytes into the buffer and return how many; 0 at the end."""
        ...


def standard_input() -> KeySource:
    """Open standard input once more, without a buffer."""
    with ends_with(Exit.KEY):
        return open(0, "rb", buffering=0, closefd=False)


def read_key(source: KeySource) -> SigningKey:
    """Read exactly the 32 bytes up to the end of the stream, and leave no copy but the key's own."""
    # One more than a key has, to see whether more comes.
    buffer = bytearray(SIZE + 1)
    try:
        with ends_with(Exit.KEY):
            length = _fill(source, memoryview(buffer))
            need(length == SIZE, Exit.KEY, f"standard input is not the {SIZE} bytes of a key")
            return SigningKey(bytes(buffer[:SIZE]))
    finally:
        buffer[:] = bytes(len(buffer))


def _fill(source: KeySource, view: memoryview) -> int:
    length = 0
    while length < len(view):
        read = source.readinto(view[length:])
        if not read:
            break
        length += read
    return length
