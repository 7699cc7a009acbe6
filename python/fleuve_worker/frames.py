"""Frames on the socket: type (1 byte), channel (4), length (8), payload; little endian.

    from the server   T a task; D a piece of input; E the end of an input; M the answer to a question
    from the worker   N input is wanted; D output; M a question; E the task is done; X user code raised
"""

import select
import socket as sockets
import struct

HEAD = struct.Struct("<cIQ")
TASK, DATA, END, NEED, ASK, RAISED = b"T", b"D", b"E", b"N", b"M", b"X"


class Socket:
    """One blocking stream socket."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self._socket = sockets.socket(fileno=descriptor)
        self._socket.setblocking(True)

    def wait(self, seconds):
        """True once something can be read."""
        return bool(select.select([self.descriptor], [], [], seconds)[0])

    def receive(self):
        """(type, channel, payload), or None at the end of the stream."""
        head = self._read(HEAD.size)
        if head is None:
            return None
        kind, channel, length = HEAD.unpack(head)
        return kind, channel, self._read(length) if length else b""

    def send(self, kind, channel, *parts):
        self._socket.sendall(HEAD.pack(kind, channel, sum(memoryview(part).nbytes for part in parts)))
        for part in parts:
            self._socket.sendall(part)

    def _read(self, size):
        buffer = bytearray(size)
        view = memoryview(buffer)
        at = 0
        while at < size:
            got = self._socket.recv_into(view[at:], size - at)
            if got == 0:
                return None
            at += got
        return bytes(buffer) if size < 65536 else buffer
