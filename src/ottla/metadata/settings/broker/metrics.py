"""Metrics and client telemetry."""

from ottla.metadata.settings.definition import ANY, INT, LIST, LONG, LOW, STRING, Setting, Update
from ottla.metadata.settings.rule import at_least

METRICS_SETTINGS: tuple[Setting, ...] = (
    Setting("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), LOW, ANY,
            "Java classes that report metrics.", update=Update.CLUSTER_WIDE),
    Setting("metrics.num.samples", INT, 2, LOW, at_least(1),
            "Samples over which metrics are averaged."),
    Setting("metrics.recording.level", STRING, "INFO", LOW, ANY,
            "How much is recorded: INFO, DEBUG or TRACE."),
    Setting("metrics.sample.window.ms", LONG, 30_000, LOW, at_least(1),
            "Length of a sample."),
    Setting("kafka.metrics.polling.interval.secs", INT, 10, LOW, at_least(1),
            "How often the older reporters poll."),
    Setting("kafka.metrics.reporters", LIST, (), LOW, ANY,
            "Older Java classes that report metrics."),
    Setting("telemetry.max.bytes", INT, 1_048_576, LOW, at_least(1),
            "Largest push of a client's own metrics."),
)
