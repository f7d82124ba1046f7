"""Three nodes beside three nodes of Apache Kafka."""
