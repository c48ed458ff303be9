"""The Kubernetes operator: reads resources, resolves them, delivers configuration and writes status."""
