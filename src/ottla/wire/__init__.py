"""The wire format: messages, records and error codes as pure code, without I/O."""
