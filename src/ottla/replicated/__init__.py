"""One shape for everything replicated: machines that decide, and the host that makes their decisions durable."""
