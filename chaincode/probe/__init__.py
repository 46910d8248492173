"""The smallest contract that exercises every service of a peer; it shows that a network works."""

from chaincode.probe.contract import Probe

__all__ = ["Probe"]
