"""The metadata quorum: the log that everything replicated in the cluster's metadata lives in, and its driver."""
