"""What may happen to a quorum, one scenario a file. The first seven are those of Kafka's own simulation."""
