"""Where the certificate of a server is, and whether clients need one."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM. `certificate` and `key` may be one file; `authorities` are those who vouch for clients."""

    certificate: str
    key: str
    key_password: str | None = field(default=None, repr=False)
    authorities: str | None = None
    needs_client_certificate: bool = False
    protocol_min: str = "tls1.2"
