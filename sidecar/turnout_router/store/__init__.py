"""SQLite: what a router keeps."""
