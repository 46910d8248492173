"""Contracts: classes whose marked methods are a chaincode's functions.

A function is marked `@submit` (it writes) or `@evaluate` (it only reads, and the shim holds it to that). Its
arguments are decoded by their annotations; what it returns becomes the payload: bytes as they are, text as
UTF-8, None as nothing, anything else as canonical JSON. What it raises becomes an error with a code.
"""

import inspect
import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from . import contract_api
from .arguments import Parameter, decode, parameters_of
from .context import Context
from .errors import RefusalError, ShimError, StreamError, encode_error

log = logging.getLogger("shim")

Method = TypeVar("Method", bound=Callable[..., Any])
MARK = "_contract_function_kind"


def submit(method: Method) -> Method:
    """Mark a contract's method as a function that writes."""
    setattr(method, MARK, "submit")
    return method


def evaluate(method: Method) -> Method:
    """Mark a contract's method as a function that only reads; a write in it is an error."""
    setattr(method, MARK, "evaluate")
    return method


@dataclass(frozen=True)
class Function:
    """A callable function of a contract, as its signature declares it."""

    name: str
    kind: str
    parameters: tuple[Parameter, ...]
    call: Callable[..., Any]
    doc: str

    def to_dict(self) -> dict[str, Any]:
        """Describe the function for the metadata query."""
        arguments = [{"name": p.name, "type": p.type, "optional": p.optional} for p in self.parameters]
        return {"name": self.name, "kind": self.kind, "arguments": arguments, "doc": self.doc}


@dataclass(frozen=True)
class Response:
    """A function's outcome on its way to the peer; a status from 400 on is an error."""

    status: int
    payload: bytes = b""
    message: str = ""


class Contract:
    """A chaincode's functions; subclass it, mark methods, serve an instance."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    # Transactions of a cooperative contract share a thread and take turns when they wait for the peer, which
    # costs less than threads; one that waits for anything else, or starts threads, must not be cooperative.
    cooperative: ClassVar[bool] = False
    # Exceptions of other packages that are refusals; `describe` says how they read.
    refusals: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self) -> None:
        self.functions = {function.name: function for function in self._find_functions()}

    @evaluate
    def metadata(self, ctx: Context) -> dict[str, Any]:  # noqa: ARG002
        """List this contract's functions with their arguments."""
        functions = [self.functions[name].to_dict() for name in sorted(self.functions)]
        return {"contract": self.name, "version": self.version, "functions": functions}

    def invoke(self, ctx: Context) -> Response:
        """Run the function a transaction names and answer with its outcome, unless the peer is gone."""
        try:
            return Response(200, encode(self._call(ctx)))
        except StreamError:
            raise
        except self.refusals as error:
            return Response(RefusalError.status, message=encode_error(*self.describe(error)))
        except (Exception, SystemExit) as error:
            return error_response(error, ctx.tx_id)

    def describe(self, error: Exception) -> tuple[str, str]:
        """Give the code and the sentence of a refusal that another package raised."""
        return str(getattr(error, "code", "REFUSED")), str(error)

    def _call(self, ctx: Context) -> Any:
        name = ctx.arguments[0].decode("utf-8", "replace") if ctx.arguments else ""
        if name == contract_api.FUNCTION:
            return contract_api.describe(self)
        function = self.functions.get(name)
        if function is None:
            raise RefusalError(
                "UNKNOWN_FUNCTION", f"{self.name} has no function {name[:100]!r}; metadata lists them"
            )
        values = decode(name, function.parameters, ctx.arguments[1:])
        if function.kind == "evaluate":
            ctx.forbid_writes(f"{name} only evaluates and cannot write")
        return function.call(ctx, *values)

    def _find_functions(self) -> list[Function]:
        found = []
        for name, method in inspect.getmembers(type(self), inspect.isfunction):
            kind = getattr(method, MARK, None)
            if kind is not None:
                doc = inspect.getdoc(method) or ""
                found.append(Function(name, kind, parameters_of(method), getattr(self, name), doc))
        return found


def encode(result: Any) -> bytes:
    """Write a function's result as the bytes every peer writes."""
    if result is None:
        return b""
    if isinstance(result, bytes):
        return result
    if isinstance(result, str):
        return result.encode("utf-8")
    text = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8")


def error_response(error: BaseException, tx_id: str) -> Response:
    """Turn an exception into what the client may know: a coded sentence, and of a bug only where to look."""
    if isinstance(error, ShimError):
        return Response(error.status, message=encode_error(error.code, str(error)))
    # The exception's own text may quote a value, so only its type and place are logged.
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    log.error("tx=%s unexpected %s at %s", tx_id, type(error).__name__, places)
    sentence = f"unexpected {type(error).__name__}; the chaincode's log says where, under transaction {tx_id}"
    return Response(500, message=encode_error("INTERNAL", sentence))
