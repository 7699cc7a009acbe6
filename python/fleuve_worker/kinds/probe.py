"""Says what this interpreter has, and gives its input back piece by piece: for checks of an installation and tests."""

import importlib.util
import os
import platform


def run(task):
    piece = task.read()
    while piece is not None:
        task.write(piece)
        piece = task.read()
    task.result = {
        "python": platform.python_version(),
        "pid": os.getpid(),
        "blobs": [len(blob) for blob in task.blobs],
        "modules": [name for name in ("pyspark", "pandas", "pyarrow", "grpc") if importlib.util.find_spec(name)],
    }
    action = task.header.get("action")
    if action == "raise":
        raise ValueError("the probe raises: " + task.header["text"])
    if action == "die":
        os.kill(os.getpid(), 9)
    if action == "hang":
        while True:
            pass
    if action == "ask":
        answer, data = task.ask({"question": "how many"}, b"abc")
        task.result.update(answer, data=len(data))
    if action == "grow":
        kept = []
        while True:
            kept.append(bytearray(1 << 20))
    if action == "print":
        print("printed by the probe")
