"""Producer, consumer and admin for Ottla and Apache Kafka, in asyncio; `ottla.client.blocking` is the same without."""
