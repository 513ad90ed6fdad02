"""
The warnings and errors that operators read, each with what to do about it: docs/operations.md shows this table.

A message is the format string of a log line. Lines of programming errors come with a traceback.
"""

from typing import Self


class LogMessage(str):
    """
    A format string of `twisted.logger`, and what an operator does about the line.
    """

    __slots__ = ("remedy",)

    remedy: str

    def __new__(cls, text: str, remedy: str) -> Self:
        message = super().__new__(cls, text)
        message.remedy = remedy
        return message


_REPORT = "A bug in kgateway: please report it with the traceback."

# Server and dispatch
CANNOT_START = LogMessage("kgateway cannot start: {error}", "Fix what the line names, then start again.")
NOT_SEARCHED = LogMessage(
    "{what} is not searched for plugins: {why}",
    "If it has plugins, fix what the line names and restart the gateway.",
)
CANNOT_REOPEN_LOG = LogMessage(
    "cannot reopen {path}; continuing with the old file: {reason}",
    "Allow the user that the gateway runs as to create the file in its folder, or create the file for that user.",
)
CANNOT_LISTEN_AGAIN = LogMessage(
    "cannot listen again; retrying in a second: {error}",
    "Free the port, or wait: the gateway tries again every second.",
)
PORT_CLOSED_BADLY = LogMessage("a listening port closed with an error", _REPORT)
CLOSED_BY_FORCE = LogMessage(
    "{connections} closed by force",
    "Nothing; when the gateway stopped, these clients did not read their responses in time.",
)
CONNECTION_FAILED = LogMessage("a connection from {host} failed", _REPORT)
REQUEST_FAILED = LogMessage("{api} v{version} of {client} failed", _REPORT)
CANNOT_ENCODE = LogMessage("{api} v{version}: cannot encode the response", _REPORT)
RESPONSE_LOST = LogMessage("a response was lost", _REPORT)
CANNOT_SERVE = LogMessage("{subject} could not be served", _REPORT)
LONG_POLL_FAILED = LogMessage("a long poll did not end", _REPORT)
ACTION_FAILED = LogMessage("an action after a response failed", _REPORT)
CONVERSION_FAILED = LogMessage("the conversion of records failed", _REPORT)
LATE_CHANGE_FAILED = LogMessage(
    "a change failed after its client had stopped waiting for it",
    "Repeat the change; the client got REQUEST_TIMED_OUT.",
)
CONTROL_CONNECTION_FAILED = LogMessage("a control connection failed", _REPORT)
CONTROL_COMMAND_FAILED = LogMessage("the control command {line!r} failed", _REPORT)
TOPIC_CONFIG_UNMET = LogMessage(
    "topic {topic}: {what}",
    "Nothing, or remove the config: the topic was created, but without what the line names.",
)
CONFIG_UNMET = LogMessage(
    "config of {resource}: {what}", "Nothing, or remove the config: it is stored, but has no effect here."
)
KEEPS_CONFIG = LogMessage(
    "{topic} keeps its config: {why}",
    "Change the broker's defaults so that they do not contradict the topic's own configs.",
)

# All brokers
LISTENER_FAILED = LogMessage("a listener of a partition failed", _REPORT)
CANNOT_EXPIRE = LogMessage("{partition}: cannot expire records", _REPORT)
RETENTION_ROUND_FAILED = LogMessage("a retention round failed", _REPORT)
SPOOL_FAILED = LogMessage(
    "recent records stay in memory, because temporary files cannot be written: {error}",
    "Free some space for temporary files (`TMPDIR`); until then the gateway needs more memory.",
)
SPOOL_MOVED = LogMessage(
    "temporary files are in {used}, because {wanted} is not writable",
    "Make the folder writable, or name another one in `TMPDIR`.",
)

# Embedded log
CANNOT_WRITE = LogMessage(
    "{what} cannot be written: {reason}. Clients get KAFKA_STORAGE_ERROR and retry; nothing that was acknowledged"
    " is lost. Writing resumes by itself once the cause is gone.",
    "Free some space on the disk, or make it writable again.",
)
PARTITION_OFFLINE = LogMessage(
    "{partition} is offline, because {why}; restart the gateway",
    "Check the disk, then restart: the partition is recovered from its files.",
)
CANNOT_READ = LogMessage(
    "{file} cannot be read for offset {offset}: {what}. Run `kgateway log check` for details.",
    "Run `kgateway log check`; with the gateway stopped, restore the file from a copy.",
)
CANNOT_OPEN_PARTITION = LogMessage(
    "{partition} cannot be opened: {error}",
    "Fix what the line names; the gateway tries again when a client next uses the partition.",
)
OPENING_FAILED = LogMessage("{topic}-{index} cannot be opened", _REPORT)
RECOVERED = LogMessage(
    "recovered: {fault}",
    "Nothing, if the line says that something was rebuilt. If records were truncated, look at the copy that the "
    "line names (`.cut-POSITION`).",
)
PRELOADING_FAILED = LogMessage("not all partitions could be opened", _REPORT)
NOT_SYNCED_AT_STOP = LogMessage(
    "{partitions} not synced after {seconds} s; the next start recovers the last writes. Nothing is lost unless "
    "the machine loses power before that.",
    "Nothing. If it happens often, use fewer partitions or a faster disk.",
)
CHECKPOINT_FAILED = LogMessage(
    "cannot write a checkpoint",
    "Check the disk; the gateway tries again in a few seconds.",
)
LOG_STARTS_LOST = LogMessage(
    "{path} is damaged: logs begin at their first segments again",
    "Repeat DeleteRecords for each partition whose deleted records must not reappear.",
)
FOLDER_WITHOUT_TOPIC = LogMessage(
    "{folder} belongs to no topic; remove it if nobody needs it",
    "Remove the folder, unless a topic is missing.",
)
CANNOT_REMOVE_DELETED = LogMessage(
    "cannot remove files of deleted topics",
    "Check the disk; the next start tries again.",
)
SEGMENT_STAYS = LogMessage(
    "cannot delete a segment before the next start: {reason}",
    "Check the disk; the next start deletes the file.",
)
CANNOT_DELETE_SEGMENTS = LogMessage("cannot delete segments", _REPORT)
COMPACTION_FAILED = LogMessage("partitions could not be compacted", _REPORT)
NOT_COMPACTED_DAMAGED = LogMessage(
    "{folder} is not compacted, because it is damaged: {error}. Run `kgateway log check` for details.",
    "Run `kgateway log check`; with the gateway stopped, restore the file from a copy.",
)
NOT_COMPACTED = LogMessage("{folder} is not compacted: {why}", "Fix what the line names; the next round tries again.")
BATCHES_NOT_COMPACTED = LogMessage(
    "{folder}: the records of {batches} cannot be read and stay as they are",
    "Look for the producer that wrote these batches; they are kept whole.",
)

# Coordinators
CANNOT_LOAD = LogMessage("{things} cannot be loaded", _REPORT)
NO_SNAPSHOT = LogMessage(
    "cannot write a snapshot of {things}; the next start takes longer",
    "Check the disk, or the filer.",
)
DAMAGED_RECORD = LogMessage(
    "skipping a damaged record of {things}: {error}",
    "The record is lost; find out what may have damaged it.",
)
RECORD_SKIPPED = LogMessage("skipping a record of {things}: {key}", _REPORT)
GROUP_STATE_NOT_WRITTEN = LogMessage(
    "cannot write {key}: {error}",
    "Nothing, if it is rare: members repeat their requests. Otherwise check the disk, or the filer.",
)
GROUP_WRITE_FAILED = LogMessage("cannot write a group", _REPORT)
AFTER_GROUP_WRITE_FAILED = LogMessage("an error after writing a group", _REPORT)
GROUP_CHANGE_NOT_WRITTEN = LogMessage(
    "cannot write a change to a group: {error}",
    "Nothing, if it is rare: members repeat their requests. Otherwise check the disk, or the filer.",
)
MEMBER_NOT_REMOVED = LogMessage("cannot remove {member} now: {error}", "Nothing; the coordinator tries again.")
GROUP_NOT_CREATED = LogMessage(
    "group {group}: its first write failed: {error}",
    "Nothing, if it is rare: members rejoin.",
)
OFFSETS_NOT_EXPIRED = LogMessage(
    "group {group}: cannot delete offsets now: {error}",
    "Nothing; the next round tries again.",
)
OFFSET_ROUND_FAILED = LogMessage("cannot expire the offsets of all groups", _REPORT)
OFFSET_EXPIRY_FAILED = LogMessage("the deletion of offsets failed", _REPORT)
KEEPS_CLASSIC = LogMessage(
    "group {group}: its conversion cannot be written; it keeps the classic protocol",
    "Nothing, if it is rare: the gateway tries again when a consumer joins.",
)
KEEPS_CONSUMER = LogMessage(
    "group {group}: its conversion cannot be written; it keeps the consumer protocol: {error}",
    "Nothing, if it is rare: the gateway tries again at the next change.",
)
TRANSACTION_ABORTED = LogMessage(
    "{id}: aborted its transaction, open for {open_ms} ms with a timeout of {timeout_ms} ms; {producer} is fenced",
    "Check the producer: it may be hanging, or may need a longer `transaction.timeout.ms`.",
)
CANNOT_EXPIRE_TRANSACTION = LogMessage(
    "{id}: cannot expire the id or abort its transaction now: {error}",
    "Nothing; the next round tries again.",
)
LATE_ROUND_FAILED = LogMessage("cannot abort every transaction that has timed out", _REPORT)
UNUSED_ROUND_FAILED = LogMessage("cannot expire every unused transactional id", _REPORT)
TRANSACTION_WRITE_FAILED = LogMessage("the write of a transaction failed", _REPORT)
MARKER_LISTENER_FAILED = LogMessage("a listener failed at the end of a transaction in {partition}", _REPORT)
CANNOT_END_TRANSACTION = LogMessage(
    "{id}: this coordinator cannot end its transaction: {error}",
    "Nothing, if another gateway has become the coordinator: that one ends it. Otherwise use `kgateway transactions`.",
)
TRANSACTION_NOT_ENDED = LogMessage("{id}: its transaction was not ended", _REPORT)
NO_MARKER_YET = LogMessage(
    "cannot write the marker of {producer} to {partitions} (such as {topic}-{index}) yet: {error}",
    "Fix what the error names; the gateway tries again until all markers are written. Until then, read_committed "
    "consumers do not read past the transaction.",
)
CANNOT_RESUME_TRANSACTIONS = LogMessage("cannot resume all prepared transactions", _REPORT)
COMPLETION_NOT_WRITTEN = LogMessage(
    "{id}: cannot record that its transaction is complete; retrying: {error}",
    "Nothing, if it is rare; otherwise check the disk, or the filer.",
)

# SeaweedFS and SeaweedMQ
NO_CALLS = LogMessage("cannot call {to}", _REPORT)
CANNOT_HANDLE_MESSAGE = LogMessage("a message of {path} could not be handled", _REPORT)
CANNOT_HANDLE_END = LogMessage("the end of {path} could not be handled", _REPORT)
CANNOT_HANDLE_CHANGE = LogMessage("a change in the filer could not be handled", _REPORT)
CANNOT_ACKNOWLEDGE = LogMessage("cannot acknowledge an append", _REPORT)
LEASE_LOST_EARLY = LogMessage(
    "the lease was lost before this gateway had begun to lead",
    "Nothing; the gateway stands by and tries again. If it happens often, look for a slow filer.",
)
CANNOT_LEAD_YET = LogMessage("this gateway cannot lead yet: {error}", "Check the cluster; the gateway tries again.")
CANNOT_LEAD_AGAIN = LogMessage(
    "this gateway cannot lead again; restart it",
    "Restart the gateway, and report the traceback: it is a bug.",
)
LEADER_IS_ANOTHER = LogMessage(
    "{holder} leads; this gateway stands by",
    "Nothing; this gateway takes over when the leader has stopped or failed.",
)
LEADERSHIP_LOST = LogMessage(
    "this gateway has lost leadership; the lock is held by {holder}",
    "Find out why this gateway lost its lease: it may have been suspended, or unable to reach the filer.",
)
NO_WATCHDOG = LogMessage(
    "the watchdog of a frozen leader has no effect: {why}",
    "In a container, run an init as process 1, for example with `docker run --init`: see docs/seaweedmq.md. "
    "`--seaweedmq-watchdog-ms 0` turns the watchdog off, and this message.",
)
PORTS_STAY_CLOSED = LogMessage(
    "ports stay closed while another gateway leads: {why}",
    "Advertise an address for each listener: see docs/seaweedmq.md.",
)
NODE_ID_TWICE = LogMessage(
    "{at} has the node id {id}, like this gateway; give each a --node-id of its own",
    "Give each gateway a `--node-id` of its own.",
)
BAD_GATEWAY_FILE = LogMessage(
    "{path} does not describe a gateway: {error}", "Remove the file, unless a gateway wrote it."
)
FILERS_WITH_OTHER_STORES = LogMessage(
    "filers with stores of their own are in the cluster: {filers}",
    "Stop these filers, or let all filers share one store: see docs/seaweedmq.md.",
)
FILERS_UNWATCHED = LogMessage(
    "the stores of the filers are no longer checked",
    "Restart the gateway, and report the traceback: it is a bug.",
)
GATEWAYS_UNREAD = LogMessage(
    "the files of other gateways are no longer read",
    "Restart the gateway, and report the traceback: it is a bug.",
)
TOPIC_LEFT_ALONE = LogMessage(
    "topic {name} is not served: {error}",
    "Fix or remove the file that the line names, then restart the gateway.",
)
TOPIC_DELETED_ELSEWHERE = LogMessage("topic {name} was deleted by another program", "Nothing, if this was intended.")
TOPIC_CHANGED_ELSEWHERE = LogMessage(
    "another program has changed the number of partitions of topic {name} from {before} to {count}",
    "Nothing, if this was intended.",
)
TOPIC_REDUCED = LogMessage(
    "another program has removed partitions or columns of topic {name}; SeaweedMQ is asked for {count} partitions with "
    "all columns",
    "Find the program: Kafka's topics never lose partitions. To get fewer, delete the topic and create it again.",
)
TOPIC_NOT_RESTORED = LogMessage(
    "topic {name} cannot get back its partitions or columns: {error}",
    "Check SeaweedMQ's brokers, and restart the gateway. Until then the missing partitions can only be read.",
)
PARTITIONS_REMOVED = LogMessage(
    "topic {name} has only {count} of {all} partitions in SeaweedMQ; the others can be read, but take no records",
    "Nothing, if this was intended. Otherwise let the program that owns the topic give it {all} partitions again.",
)
TOPIC_NOT_SERVED_YET = LogMessage(
    "topic {name} cannot be served yet: {error}",
    "Nothing, if it is rare: the gateway tries again.",
)
EXTERNAL_CHANGES_UNSEEN = LogMessage(
    "cannot yet look for changes that other programs made to topics: {error}",
    "Nothing, if it is rare: the gateway tries again.",
)
STATE_TOPIC_NOT_STORED = LogMessage(
    "cannot store topic {topic} yet: {error}",
    "Check the filer; the gateway tries again.",
)
NOT_COMPACTED_HERE = LogMessage(
    "topic {name} has cleanup.policy={policy}, but nothing on SeaweedMQ is compacted: {outcome}",
    "Nothing, or set `cleanup.policy=delete`: SeaweedMQ does not compact topics by key.",
)
RECORDS_NOT_IN_FILES = LogMessage(
    "{partition}: {records} at its end may not be in files: {why}",
    "Start the gateway again soon: it publishes what is missing from the files, as long as SeaweedMQ's broker still "
    "has it.",
)
PARTITION_NOT_OPEN_YET = LogMessage(
    "{topic}-{index} is not open yet: {why}",
    "Nothing, if it is rare: the gateway tries again.",
)
OPENING_PARTITION_FAILED = LogMessage("{topic}-{index} could not be opened", _REPORT)
OFFSETS_SHIFTED = LogMessage(
    "{partition}: {error}; opening it again",
    "Look for another program that publishes to the topic.",
)
LOG_END_DIFFERS = LogMessage(
    "{name}: its broker continues with message {next_message}, but the files end before {end}",
    "Look for a broker that was killed. If the broker is ahead of the files, messages were lost; if it is behind, "
    "restart it.",
)
CANNOT_PUBLISH = LogMessage(
    "cannot publish to {name}; trying again: {error}",
    "Check SeaweedMQ's brokers; the gateway tries again.",
)
STREAM_BROKEN = LogMessage(
    "{name}: {error}; reading its files",
    "Nothing; the gateway publishes what is missing from the files.",
)
PUBLISHING_STOPPED = LogMessage(
    "publishing to {name} has stopped",
    "Restart the gateway, and report the traceback: it is a bug.",
)
TAIL_FAILED = LogMessage(
    "asking the broker of {name} for messages that are in no file yet has failed",
    "Report the traceback: it is a bug. Consumers get these messages when they are in files.",
)
NUMBERS_GIVEN_AGAIN = LogMessage(
    "the broker of {name} was killed, and numbers new messages like some that consumers have got; offsets continue "
    "with {offset}",
    "Nothing. What other programs published just before may be lost: fewer messages if brokers flush more often.",
)
FOREIGN_MESSAGE = LogMessage(
    "skipped message {offset} of another program in {path}: {reason}",
    "Nothing, if that program is meant to publish there: consumers do not see the message.",
)
FOREIGN_MESSAGES = LogMessage(
    "skipped message {offset} of another program in {path}: {reason}; there are many, so no more are logged",
    "As in the row above.",
)
LEDGER_UNUSABLE = LogMessage(
    "{name}: the saved ledger cannot be used: {why}",
    "Nothing; the gateway rebuilds the ledger from the log files.",
)
LEDGERS_IMPORTED = LogMessage(
    "imported {ledgers} from {folder}, which is not read again",
    "Delete the folder, unless you want to go back to an earlier version of the gateway.",
)
OFFSETS_NOT_EXPORTED = LogMessage(
    "{offsets} will not be in the Go gateway's files before the next start",
    "Nothing. If you want the Go gateway to take over now, first start this gateway again.",
)
OFFSETS_NOT_EXPORTED_YET = LogMessage(
    "not all offsets are in the Go gateway's files yet: {error}",
    "Check the filer; the gateway tries again.",
)
OFFSET_FILE_LEFT_ALONE = LogMessage(
    "{path} is not imported: {error}",
    "Remove the file if no group needs the offset in it.",
)
