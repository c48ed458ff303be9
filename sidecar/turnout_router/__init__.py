"""The router: gateway, cluster membership, runtime and backends of one node."""
