"""What `ottla dev` assumes when nobody says otherwise: one node on this machine, everything durable."""

DATA = "ottla-data"
PORT = 9092
METRICS_PORT = 9404
FLUSH = "ack"


def dev_properties(
    *,
    data: str = DATA,
    port: int = PORT,
    flush: str = FLUSH,
    metrics_port: int | None = METRICS_PORT,
    controller_port: int | None = None,
) -> dict[str, str]:
    """The properties of a node that is broker and controller at once, reachable from this machine only.

    The controller listens one port above the broker unless told; a port of 0 leaves the choice to the system. Without
    a port there is no metrics page.
    """
    if controller_port is None:
        controller_port = port + 1 if port else 0
    controller = f"127.0.0.1:{controller_port}"
    return {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": controller,
        "log.dirs": data,
        "ottla.flush": flush,
        "ottla.metrics.listener": f"127.0.0.1:{metrics_port}" if metrics_port is not None else "",
    }
