"""Replaying a public trace against a gateway, with every request accounted for.

`trace` reads the two formats, `prompts` makes texts of the sizes a trace gives, `answers` reads what comes back,
`sender` keeps the clock and the connections, `account` has one entry for each row, `summary` adds them up. Only `sender`
does I/O on the network.
"""
