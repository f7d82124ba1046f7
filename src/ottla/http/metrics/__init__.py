"""Metrics as Prometheus reads them: the text format, the process, and the requests of an HTTP service."""
