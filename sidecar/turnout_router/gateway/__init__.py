"""The request path: clients and masters in, backends and slaves out."""
