"""Counters as Prometheus reads them, under the names that Kafka's dashboards already ask for."""
