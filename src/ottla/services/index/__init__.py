"""The page that says what is there: the cluster, versions, and the services with their addresses."""
