"""What SmartBFT's orderers note in each block that they sign: its place in the order, and under which leader.

Its messages are in no package for Python, so the two numbers that matter are read from the bytes.
"""

from typing import NamedTuple

from executor.audit.fabric.messages import MalformedError

VIEW, SEQUENCE = 1, 2
_VARINT, _LENGTH = 0, 2
_MAX_SHIFT = 63


class View(NamedTuple):
    """The leader's term, and the number of the decision."""

    view: int
    sequence: int

    @classmethod
    def from_bytes(cls, raw: bytes) -> "View":
        """Read the metadata of a block's consenters."""
        found, place = {VIEW: 0, SEQUENCE: 0}, 0
        while place < len(raw):
            tag, place = _number(raw, place)
            value, place = _number(raw, place)
            if tag & 7 == _LENGTH:
                place += value
            elif tag & 7 != _VARINT:
                raise MalformedError("the orderers' metadata are of another form")
            elif tag >> 3 in found:
                found[tag >> 3] = value
        if place != len(raw):
            raise MalformedError("the orderers' metadata end too soon")
        return cls(found[VIEW], found[SEQUENCE])

    def __str__(self) -> str:
        return f"decision {self.sequence} of view {self.view}"

    def follows(self, last: "View") -> bool:
        """Whether it is the next decision, under the same leader or a later one."""
        return self.sequence == last.sequence + 1 and self.view >= last.view


def _number(raw: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(raw) and shift <= _MAX_SHIFT:
        byte = raw[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
    raise MalformedError("the orderers' metadata hold no number where one should be")
