"""A session: on the server that is named, else on one of our own that ends with this process."""

import atexit
import os
import subprocess
import sys
import threading

from fleuve.program import binary

_lock = threading.Lock()
_own = None  # (process, remote address)


def _end(process, copier):
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
    copier.join(timeout=1)  # what it printed last


def _copy(lines):
    """What the server prints, the rows of console streams, belongs where this program prints."""
    for line in lines:
        try:
            print(line, end="", flush=True)
        except (OSError, ValueError):
            pass  # nobody hears this program any more: the server is not to wait for it


def _start(arguments):
    environment = {**os.environ, "FLEUVE_PYTHON": os.environ.get("FLEUVE_PYTHON", sys.executable)}
    process = subprocess.Popen(
        [binary(), "server", "--port", "0", "--until-stdin-closes", *arguments],
        stdin=subprocess.PIPE,  # closes with this process, however it ends
        stdout=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # an interrupt of the notebook's cell is not the server's
    )
    first = process.stdout.readline()
    if not first.startswith("listening on "):
        process.terminate()
        raise RuntimeError(f"the engine did not start (exit code {process.wait()}); what it said stands above")
    copier = threading.Thread(target=_copy, args=[process.stdout], daemon=True)
    copier.start()
    atexit.register(_end, process, copier)
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
