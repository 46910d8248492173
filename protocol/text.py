"""Free text on the ledger: one line that looks on every screen like what it says.

Control characters move a terminal's cursor, bidirectional ones turn the order of what is read, invisible ones
make two texts look alike. The characters are listed here, not asked of Python, so that all peers refuse the
same ones.
"""

import re

from protocol.errors import ProcessError

UNPRINTABLE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls, line ends included
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # drawn as nothing
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional
    "\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # zero width, line and paragraph ends
    "\U000e0000-\U000e0fff"  # tags
    "]"
)


def check_printable(text: str, what: str) -> None:
    """Refuse text with a character that does not show, or that changes how the others do."""
    found = UNPRINTABLE.search(text)
    if found is not None:
        raise ProcessError(
            "PROCESS_TEXT", f"{what} has the character U+{ord(found.group()):04X} at {found.start()}"
        )
