"""Who is in the cluster: registration, polling, the registry of nodes and models."""
