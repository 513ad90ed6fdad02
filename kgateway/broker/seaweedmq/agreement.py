"""
Whether a ledger that was kept can be that of a log.
"""

from collections.abc import Sequence

from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.ledger import Ledger


class WrongLedger(Exception):
    """
    The ledger does not say what the log does.
    """


def check(ledger: Ledger, form: Form, folders: Sequence[Folder], start: int, end: int) -> None:
    """
    A WrongLedger where it cannot be that of a log with this start and end, in these folders.
    """
    if start < end and not ledger.rows:
        raise WrongLedger("there is none")
    if not ledger.rows:
        return
    if ledger.batched != form.batched:
        raise WrongLedger("its rows are of another form")
    if ledger.end > end:
        raise WrongLedger(f"it goes to offset {ledger.end - 1}, and the log to {end - 1}")
    if ledger.rows.kafka[0] > start:
        raise WrongLedger(f"it begins with offset {ledger.rows.kafka[0]}, and the log with {start}")
    there = [(folder.unix_time_ns, folder.part) for folder in folders]
    if any(section[1:] not in there for section in ledger.sections):
        raise WrongLedger("it tells of partitions that the topic never had")
