"""Calls to the other chaincodes of the channel; their refusals keep their codes."""

import json
from typing import Any

from chaincode.shim import Context

IMAGE = "image"
ORCHESTRATION = "orchestration"
EXECUTION_RECORD = "execution-record"
MODEL = "model"


def call_json(ctx: Context, chaincode: str, function: str, *arguments: str | int) -> Any:
    """Call another chaincode in this transaction and parse its JSON answer; None when it answers nothing."""
    answer = ctx.invoke(chaincode, [function, *map(str, arguments)])
    return json.loads(answer) if answer else None
