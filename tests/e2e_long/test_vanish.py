"""A client that is killed: what it leaves behind on the server."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from conftest import *  # noqa: E402,F403  (the fixtures)


def test_a_client_that_vanishes_leaves_nothing_behind_but_its_streams(server, folder):
    # Its stream goes on, its long query ends with it.
    program = """
import sys, threading, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).create()
q = spark.readStream.format("rate").option("rowsPerSecond", 10).load().writeStream.format("delta") \\
    .option("checkpointLocation", sys.argv[2] + "/cp").start(sys.argv[2] + "/out")
threading.Thread(target=lambda: spark.range(100_000_000_000).selectExpr("sum(id)").collect(), daemon=True).start()
time.sleep(1)
print("ready", flush=True)
time.sleep(60)
"""
    client = subprocess.Popen([sys.executable, "-c", program, server.url, folder], stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline().strip() == "ready"
    client.kill()
    client.wait()
    time.sleep(2)
    spark = server.session()
    first = spark.read.format("delta").load(folder + "/out").count()
    time.sleep(2.5)
    assert spark.read.format("delta").load(folder + "/out").count() > first
    spark.stop()
