"""The one owner of "what is loaded" on a node."""
