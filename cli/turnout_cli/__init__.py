"""The command `turnout`."""
