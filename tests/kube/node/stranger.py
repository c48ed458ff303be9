"""`stranger.py ADDRESS`, inside the network namespace of the cluster: takes over an address that a pod had, and says in JSON lines what is
asked there at port 8900. It refuses everything. The address goes with standard input.

A pod may know the old owner of the address for a while: an unasked ARP reply tells all of them that it moved.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BRIDGE = "cni0"
PORT = 8900
EVERYBODY = b"\xff" * 6
ARP, IPV4, REPLY = 0x0806, 0x0800, 2


def say(**line: str) -> None:
    print(json.dumps(line), flush=True)


class Stranger(BaseHTTPRequestHandler):
    """Knows nothing of Turnout."""

    def do_GET(self) -> None:
        say(method=self.command, path=self.path)
        self.send_error(404)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing but what `say` says."""


def announce(address: str) -> None:
    ip = socket.inet_aton(address)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((BRIDGE, 0))
        mac = wire.getsockname()[4]
        arp = struct.pack("!HHBBH", 1, IPV4, 6, 4, REPLY) + mac + ip + EVERYBODY + ip
        wire.send(EVERYBODY + mac + struct.pack("!H", ARP) + arp)


def main(address: str) -> None:
    subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", BRIDGE], check=True)
    try:
        with ThreadingHTTPServer((address, PORT), Stranger) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            announce(address)
            say(listening=address)
            sys.stdin.read()
            server.shutdown()
    finally:
        subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", BRIDGE], check=True)


main(sys.argv[1])
