"""What can go wrong between a contract and its peer, by cause.

    ShimError
      RefusalError     the contract says no; carries the code the client sees
        CallError      another chaincode said no; carries that chaincode's code
      MisuseError      the contract called the shim wrongly
      PeerError        the peer answered ERROR
      SizeError        a message would exceed what a stream carries
      StreamError      the peer is gone; nobody is left to answer
      CreatorError     the caller's identity cannot be read (identity.py)
      FormatError      bytes are not the message they should be (wire.py)

Every error has a `code`: a client decides by it, the message is for people.
"""

import json
from typing import Any


class ShimError(Exception):
    """The root of every error the shim raises or reports."""

    code = "SHIM"
    status = 500


class RefusalError(ShimError):
    """A contract's answer to a request it will not serve, with a code of the contract's choosing."""

    status = 400

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CallError(RefusalError):
    """The called chaincode answered with an error; its own code and sentence are kept."""

    def __init__(self, chaincode: str, status: int, message: str) -> None:
        code, sentence = decode_error(message)
        super().__init__(code or "CALL_REFUSED", sentence)
        self.chaincode = chaincode
        self.status = status


class MisuseError(ShimError):
    """The contract asked for something Fabric cannot do, such as an empty key."""

    code = "MISUSE"


class PeerError(ShimError):
    """The peer answered a request with ERROR; its text is an error here, never a value."""

    code = "PEER_REFUSED"

    def __init__(self, request: str, text: str) -> None:
        super().__init__(f"the peer refused {request}: {text}")
        self.request = request
        self.text = text


class SizeError(ShimError):
    """Sending the message would end the stream for every other transaction on it, so it is not sent."""

    code = "TOO_LARGE"

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size} bytes; a message to the peer may have {limit}")


class StreamError(ShimError):
    """The stream to the peer ended before the transaction did; the peer has already given it up."""

    code = "STREAM_LOST"


def encode_error(code: str, message: str) -> str:
    """Write the error a client parses: one JSON object with a code and a sentence."""
    text = json.dumps({"code": code, "message": message[:1000]}, ensure_ascii=False, separators=(",", ":"))
    # An error that quotes what it refuses may hold a lone surrogate, which no message can carry.
    return text.encode("utf-8", "replace").decode("utf-8")


def decode_error(text: str) -> tuple[str | None, str]:
    """Read an error of another chaincode, which may be plain text when it uses another shim."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None, text
    if (
        isinstance(found, dict)
        and isinstance(found.get("code"), str)
        and isinstance(found.get("message"), str)
    ):
        return found["code"], found["message"]
    return None, text
