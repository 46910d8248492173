"""The execution record: the evidence of every task, and the registry through which estimators travel."""

from chaincode.execution_record.contract import ExecutionRecordContract

__all__ = ["ExecutionRecordContract"]
