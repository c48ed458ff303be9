"""Backlog lending: what a busy node cannot start, an idle one serves. Everything here decides and does no I/O."""
