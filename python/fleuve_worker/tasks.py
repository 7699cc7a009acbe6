"""One task: what it was sent, how it reads, writes and asks, and how its errors travel."""

import importlib
import json
import os
import struct
import sys
import traceback

from fleuve_worker import frames

HERE = os.path.dirname(os.path.abspath(__file__))


class Task:
    """What `run(task)` of a kind gets.

    header   a dict, as the server wrote it
    blobs    a list of bytes
    result   a dict that goes back when the task is done
    """

    def __init__(self, socket, payload):
        self._socket = socket
        self._ended = set()
        size = struct.unpack_from("<I", payload, 0)[0]
        self.header = json.loads(bytes(payload[4 : 4 + size]))
        at = 4 + size
        (count,) = struct.unpack_from("<I", payload, at)
        at += 4
        self.blobs = []
        for _ in range(count):
            (size,) = struct.unpack_from("<Q", payload, at)
            at += 8
            self.blobs.append(bytes(payload[at : at + size]))
            at += size
        self.result = {}

    @property
    def kind(self):
        return self.header["kind"]

    def read(self, channel=0):
        """The next piece of an input (bytes), or None at its end. The server makes it when it is asked for."""
        if channel in self._ended:
            return None
        self._socket.send(frames.NEED, channel)
        kind, _, payload = self._answer()
        if kind == frames.END:
            self._ended.add(channel)
            return None
        return payload

    def read_batches(self, channel=0):
        """The input as Arrow record batches, where each piece is an Arrow IPC stream of its own."""
        import pyarrow

        while True:
            piece = self.read(channel)
            if piece is None:
                return
            with pyarrow.ipc.open_stream(piece) as reader:
                yield from reader

    def write(self, data, channel=0):
        """One piece of output."""
        self._socket.send(frames.DATA, channel, data)

    def write_batches(self, schema, batches, channel=0):
        """Arrow record batches of one schema as one piece: an Arrow IPC stream."""
        import pyarrow

        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        self.write(sink.getvalue(), channel)

    def ask(self, message, data=b""):
        """Asks the server something in mid-task; (dict, bytes) of its answer."""
        text = json.dumps(message).encode()
        self._socket.send(frames.ASK, 0, struct.pack("<I", len(text)), text, data)
        _, _, payload = self._answer()
        size = struct.unpack_from("<I", payload, 0)[0]
        return json.loads(bytes(payload[4 : 4 + size])), payload[4 + size :]

    def unpickle(self, index=0):
        """The object that the client pickled into a blob, read as the user's PySpark does."""
        from pyspark.serializers import CloudPickleSerializer

        return CloudPickleSerializer().loads(self.blobs[index])

    def _answer(self):
        frame = self._socket.receive()
        if frame is None:
            os._exit(0)  # the server is gone
        return frame


def run(socket, frame):
    """Runs the task of a frame and answers; errors of user code are answers too."""
    kind, _, payload = frame
    if kind == frames.DATA or kind == frames.END or kind == frames.ASK:
        return  # meant for a task that has raised meanwhile
    task = Task(socket, payload)
    del frame, payload
    try:
        check_version(task.header.get("python_version"))
        offer_files(os.environ.get("FLEUVE_WORKER_FILES"))
        importlib.import_module("fleuve_worker.kinds." + task.kind).run(task)
        result = json.dumps(task.result).encode()
    except BaseException as error:  # also SystemExit: user code does not end the worker
        answer = json.dumps(describe(error)).encode()
        error = None
        flush()
        socket.send(frames.RAISED, 0, answer)
        return
    flush()
    socket.send(frames.END, 0, result)


def check_version(wanted):
    """The check that PySpark's own workers make."""
    own = "%d.%d" % sys.version_info[:2]
    if wanted and wanted != own:
        from pyspark.errors import PySparkRuntimeError

        names = {"worker_version": own, "driver_version": wanted}
        try:
            error = PySparkRuntimeError(errorClass="PYTHON_VERSION_MISMATCH", messageParameters=names)
        except TypeError:  # other PySpark versions name the arguments differently
            error = PySparkRuntimeError(error_class="PYTHON_VERSION_MISMATCH", message_parameters=names)
        raise error


def offer_files(folder):
    """Lets `SparkFiles.get(name)` find the files that the client has added."""
    if not folder:
        return
    try:
        from pyspark.core.files import SparkFiles
    except ImportError:
        return  # pyspark-client has no SparkFiles
    SparkFiles._root_directory = folder
    SparkFiles._is_running_on_worker = True


def describe(error):
    """An exception as the server passes it on: class, text, and the traceback without this module's own frames."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__name__
    try:
        text = str(error)
    except Exception:
        text = "<unprintable %s>" % name
    answer = {"class": name, "message": text}
    try:
        report = traceback.TracebackException.from_exception(error)
        seen = set()
        level = report
        while level is not None and id(level) not in seen:
            seen.add(id(level))
            users = [f for f in level.stack if not os.path.abspath(f.filename).startswith(HERE)]
            if users:
                level.stack[:] = users
            level = level.__cause__ or level.__context__
        answer["traceback"] = "".join(report.format())
    except Exception:
        answer["traceback"] = "%s: %s\n" % (name, text)
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    if callable(condition):
        try:
            answer["condition"] = condition()
        except Exception:
            pass
    return answer


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
