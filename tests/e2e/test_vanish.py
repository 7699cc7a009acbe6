"""A client that is killed: what it leaves behind on the server."""

import os
import subprocess
import sys
import time

import pytest

from test_service import cpu_seconds, memory_mb, rests, threads

HEAD = """
import sys, threading, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).create()
folder = sys.argv[2]
"""

TAIL = """
time.sleep(1)
print("ready", flush=True)
time.sleep(60)
"""


def run_and_kill(server, folder, program):
    """Runs a client's program until it has said that it is ready, and kills it."""
    path = folder + "/client.py"
    with open(path, "w") as file:
        file.write(HEAD + program + TAIL)
    client = subprocess.Popen([sys.executable, path, server.url, folder], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline().strip() == "ready"
    finally:
        client.kill()
        client.wait()


def background(expression):
    return "threading.Thread(target=lambda: %s, daemon=True).start()\n" % expression


def test_its_streams_go_on_and_the_rest_ends(server, folder):
    warm = server.session()
    warm.range(10).count()
    warm.stop()
    time.sleep(6)  # idle workers end after 5 s
    before = threads(server.pid)
    run_and_kill(server, folder, """
q = spark.readStream.format("rate").option("rowsPerSecond", 10).load().writeStream.format("delta") \\
    .option("checkpointLocation", folder + "/cp").start(folder + "/out")
""" + background("spark.range(100_000_000_000).selectExpr('sum(id)').collect()") + background("q.awaitTermination()"))
    # A query of which the client has seen nothing is given up after 5 s.
    deadline = time.time() + 20
    while True:
        used = cpu_seconds(server.pid)
        time.sleep(1)
        if cpu_seconds(server.pid) - used < 0.3:
            break
        assert time.time() < deadline, "the query of the killed client runs on"
    while threads(server.pid) > before + 12:  # the stream has its own
        assert time.time() < deadline, "%d threads, %d before" % (threads(server.pid), before)
        time.sleep(0.5)
    spark = server.session()
    first = spark.read.format("delta").load(folder + "/out").count()
    time.sleep(2.5)
    assert spark.read.format("delta").load(folder + "/out").count() > first
    spark.stop()


def test_a_result_that_nobody_fetches_costs_nothing_and_is_given_up(start_server, folder):
    server = start_server("--log-level", "info", "--conf", "spark.connect.execute.manager.detachedTimeout=3s")
    run_and_kill(server, folder, """
rows = spark.range(10_000_000_000).selectExpr("id", "repeat('x', 100) AS text").toLocalIterator()
for _ in range(100):
    next(rows)
""")
    assert rests(server.pid, 2), "rows are computed that nobody fetches"
    holding = memory_mb(server.pid)
    deadline = time.time() + 15
    while "is given up" not in open(server.log_path).read():
        assert time.time() < deadline
        time.sleep(0.2)
    time.sleep(0.5)
    assert memory_mb(server.pid) <= holding


def test_a_command_runs_on_as_its_client_may_come_back(server, folder):
    run_and_kill(server, folder, background(
        "spark.range(15_000_000).selectExpr('id', 'hash(id) AS h').orderBy('h').write.format('delta').save(folder + '/t')"))
    spark = server.session()
    deadline = time.time() + 60
    while not os.path.exists(folder + "/t/_delta_log/00000000000000000000.json"):
        assert time.time() < deadline
        time.sleep(0.5)
    assert spark.read.format("delta").load(folder + "/t").count() == 15_000_000
    spark.stop()
