"""Transactions, producer ids, and the transaction log."""

from ottla.metadata.settings.definition import ANY, BOOLEAN, HIGH, INT, LOW, SHORT, Setting, Update
from ottla.metadata.settings.rule import at_least

TRANSACTIONS_SETTINGS: tuple[Setting, ...] = (
    Setting("transaction.max.timeout.ms", INT, 900_000, HIGH, at_least(1),
            "Longest transaction timeout a producer may ask for."),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, LOW, ANY,
            "Whether a producer may leave its transactions open without a timeout and prepare them."),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, LOW, ANY,
            "Whether a write is checked to belong to an open transaction.", update=Update.CLUSTER_WIDE),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, LOW, at_least(1),
            "How often timed-out transactions are looked for."),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, LOW, at_least(1),
            "How often expired transactional ids are looked for."),
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, HIGH, at_least(1),
            "Bytes read at a time when transaction state is loaded."),
    Setting("transaction.state.log.min.isr", INT, 2, HIGH, at_least(1),
            "In-sync replicas that the transaction log needs for a write."),
    Setting("transaction.state.log.num.partitions", INT, 50, HIGH, at_least(1),
            "Partitions of the transaction log; fixed once it exists."),
    Setting("transaction.state.log.replication.factor", SHORT, 3, HIGH, at_least(1),
            "Replicas of the transaction log."),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, HIGH, at_least(1),
            "Segment size of the transaction log."),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, HIGH, at_least(1),
            "How long an unused transactional id is remembered."),
    Setting("producer.id.expiration.ms", INT, 86_400_000, LOW, at_least(1),
            "How long a partition remembers a silent producer's sequence numbers.",
            update=Update.CLUSTER_WIDE),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, HIGH, at_least(1),
            "First pause before adding partitions to a transaction is tried again."),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, HIGH, at_least(0),
            "Longest such pause."),
)
