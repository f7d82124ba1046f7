"""The data source `ottla` beside Spark's own Kafka connector, in one session."""
