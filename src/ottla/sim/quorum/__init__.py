"""A quorum of replicas of the metadata log in a simulated world: the production code of `raft` on disks that forget."""
