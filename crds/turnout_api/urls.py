"""What an URL of a router or backend may look like: one that does not parse would stop the router that is to call it."""

_HOST = r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_PORT = r"(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_WITH_PATH = rf"https?://{_HOST}{_PORT}(/[^?# \x00-\x1f]*)?$"

ROUTER_URL_PATTERN = rf"^https?://{_HOST}{_PORT}/?$"
"""Scheme, host and port."""
BACKEND_URL_PATTERN = rf"^{_WITH_PATH}"
"""With a path, where the server stands under one."""
OPTIONAL_URL_PATTERN = rf"^$|^{_WITH_PATH}"
"""In the router's configuration: empty where none is given."""
SLAVE_URL_PATTERN = rf"^(dns\+)?{_WITH_PATH}"
"""With `dns+` before it: each address of that host."""
