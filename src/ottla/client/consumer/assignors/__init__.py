"""The assignors of classic groups: they assign partitions to members in the client."""
