"""A session: on the server that is named, else on one of our own that ends with this process."""

import atexit
import os
import subprocess
import sys
import threading

from fleuve.program import binary

_lock = threading.Lock()
_own = None  # (process, remote address)


def _end(process):
    process.stdin.close()
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def _start(arguments):
    environment = {**os.environ, "FLEUVE_PYTHON": os.environ.get("FLEUVE_PYTHON", sys.executable)}
    process = subprocess.Popen(
        [binary(), "server", "--port", "0", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        start_new_session=True,  # an interrupt of the notebook's cell is not the server's
    )
    first = process.stdout.readline()
    if not first.startswith("listening on "):
        raise RuntimeError(f"the engine did not start (exit code {process.wait()}); what it said stands above")
    atexit.register(_end, process)
    return process, first.split()[-1]


def session(remote=None, warehouse=None, conf=None):
    """A SparkSession, the same one for every call of a process.

    remote     address of a server (`sc://host:port`), Fleuve or Apache Spark; else FLEUVE_REMOTE, else SPARK_REMOTE, else
               a server of our own on a free loopback port, which ends with this process.
    warehouse  folder of tables of a server of our own; the default is the one of the command `fleuve`.
    conf       settings of the session.
    """
    global _own
    from pyspark.sql import SparkSession

    remote = remote or os.environ.get("FLEUVE_REMOTE") or os.environ.get("SPARK_REMOTE")
    if remote is None:
        with _lock:
            if _own is None or _own[0].poll() is not None:
                _own = _start(["--warehouse", str(warehouse)] if warehouse else [])
            elif warehouse:
                raise ValueError("the server of this process runs already: `warehouse` belongs to the first call")
            remote = _own[1]
    elif warehouse:
        raise ValueError("`warehouse` is for a server of our own: the one at " + remote + " has its own")
    spark = SparkSession.builder.remote(remote).getOrCreate()
    for key, value in (conf or {}).items():
        spark.conf.set(key, value)
    return spark
