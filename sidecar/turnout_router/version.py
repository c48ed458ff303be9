"""The version of this build, as it stands in snapshots, decisions and `/api/version`."""

from importlib.metadata import version

VERSION = version("turnout")
