"""The HTTP client half: how a router calls a backend on localhost or another router.

aiohttp's client costs more CPU than all the rest of a proxied request, so this package stands behind the small
interface of `interface.py`, and another client can take its place.
"""
