"""Drivers of backend families, and supervision of processes."""
