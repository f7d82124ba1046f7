"""The records in which Kafka keeps its state: the metadata log, the internal topics, the files beside a log."""
