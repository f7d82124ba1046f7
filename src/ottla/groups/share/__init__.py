"""Share groups: members that take records one by one, side by side, from partitions they share (KIP-932)."""
