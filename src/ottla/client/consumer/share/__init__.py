"""Share groups (KIP-932): many consumers of one partition, each record to one of them, acknowledged one by one."""
