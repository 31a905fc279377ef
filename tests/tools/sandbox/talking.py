"""Programs that talk, reach out and signal, and how a test sees what they reached."""

from __future__ import annotations

import socket

from ridgeline.tools.sandbox.sandbox import Confined, Sandbox

TALK = """
import os, socket, sys
def named(words):
    kind, _, name = words.partition(":")
    if kind == "tcp":
        return socket.AF_INET, (name, 0)
    return socket.AF_UNIX, "\\0" + name if kind == "abstract" else name
family, address = named(sys.argv[1])
for type_ in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) if family == socket.AF_UNIX else (socket.SOCK_STREAM,):
    server = socket.socket(family, type_)
    server.bind(address)
    server.listen()
    if os.fork() == 0:
        client = socket.socket(family, type_)
        client.connect(server.getsockname() if family == socket.AF_INET else address)
        client.sendall(b"hello")
        os._exit(0)
    heard = server.accept()[0]
    assert heard.recv(16) == b"hello" and heard.recv(16) == b""  # the other side's end is seen
    os.wait()
    server.close()
    if family == socket.AF_UNIX and address[0] != "\\0":
        os.unlink(address)
print("talked")
"""
REACH = """
import socket, sys
def attempt(family, type_, address):
    with socket.socket(family, type_) as client:
        client.settimeout(5)
        client.connect(address)
        client.send(b"hit")
for words in sys.argv[1:]:
    kind, _, name = words.partition(":")
    family = socket.AF_INET if kind in ("tcp", "udp") else socket.AF_UNIX
    address = ("127.0.0.1", int(name)) if family == socket.AF_INET else "\\0" + name if kind == "abstract" else name
    for type_ in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        for way in (lambda: attempt(family, type_, address),
                    lambda: socket.socket(family, type_).sendto(b"hit", 0x20000000, address),
                    lambda: socket.socket(family, type_).sendmsg([b"hit"], [], 0x20000000, address),
                    lambda: socket.socketpair(socket.AF_UNIX, type_)[0].sendto(b"hit", address),
                    lambda: socket.socketpair(socket.AF_UNIX, type_)[0].connect(address)):
            try:
                way()
            except (OSError, TypeError):
                pass
print("tried")
"""
SIGNAL = """
import fcntl, os, signal, sys, time
child = os.fork()
if child == 0:
    signal.raise_signal(signal.SIGUSR1)
os.kill(child, 0)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGUSR1
child = os.fork()
if child == 0:
    time.sleep(60)
os.kill(child, signal.SIGKILL)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
for pid in (int(sys.argv[1]), os.getppid(), 0, -1):
    try:
        os.kill(pid, signal.SIGTERM)
        print("sent", pid)
    except PermissionError:
        pass
reading, writing = os.pipe()
try:
    fcntl.fcntl(reading, 10, signal.SIGTERM)  # F_SETSIG
    fcntl.fcntl(reading, fcntl.F_SETOWN, int(sys.argv[1]))
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"!")
except PermissionError:
    pass
print("signalled")
"""


def was_hit(listener: socket.socket) -> bool:
    """Say whether anything arrived: a connection on a stream listener, a datagram on the others."""
    listener.settimeout(0.1)
    try:
        if listener.type != socket.SOCK_DGRAM:
            listener.accept()[0].close()
        else:
            listener.recv(16)
    except TimeoutError:
        return False
    return True


def reached(sandbox: Sandbox, confined: Confined, listener: socket.socket) -> bool:
    """Say whether a program that tries every way reached the listener; the control: others do reach it."""
    ended, printed = sandbox.run(confined)
    assert ended.is_success and printed == "tried\n", printed
    hit = was_hit(listener)
    with socket.socket(listener.family, listener.type) as outside:
        outside.connect(listener.getsockname())
        if listener.type == socket.SOCK_DGRAM:
            outside.send(b"hit")
        assert was_hit(listener)
    return hit
