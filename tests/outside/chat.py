#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Talk to the server of demo/chat.c, and print the chains at which its clients wait.

	chat.py SERVER TDT
"""

import json
import socket
import subprocess
import sys


def connect(port):
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def join(port, name):
    client = connect(port)
    assert client.recv(100) == b"Who are you?\n"
    client.sendall(name + b"\n")
    return client


def chains(answer):
    for group in answer["groups"]:
        nodes = [node for node in group["nodes"] if node["kind"] == "frame"]
        yield ">".join(node["function"] for node in nodes)


def main():
    port = free_port()
    server = subprocess.Popen([sys.argv[1], str(port)])
    try:
        talker = join(port, b"talker")
        hearer, deaf = join(port, b"hearer"), join(port, b"deaf")
        stranger = connect(port)
        stranger.recv(100)
        # Until the one that does not read is waited for.
        for _ in range(1000):
            for _ in range(100):
                talker.sendall(b"x" * 400 + b"\n")
                hearer.recv(4096)
            found = json.loads(subprocess.run([sys.argv[2], "bt", "--json", str(server.pid)],
                                              check=True, stdout=subprocess.PIPE).stdout)
            runs = any(group["answer"] == "running" for group in found["groups"])
            if not runs and any("room to write" in chain for chain in chains(found)):
                break
        hearer.setblocking(False)
        for chain in sorted(set(chains(found))):
            print(chain)
        deaf.close()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
