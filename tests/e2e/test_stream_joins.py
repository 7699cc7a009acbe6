"""A left outer join of two streams into a Delta table while the process is killed at every step of a batch with state: each
pair and each unmatched row is in the table exactly once."""

import json
import os
import random
import time

from pyspark.errors import PySparkException

from conftest import Server

FAILPOINTS = [
    "stream.offsets.written",
    "operators.run",
    "stream.state.run",
    "delta.commit.staged",
    "stream.batch.run",
    "stream.state.staged",
    "stream.synced_before_commit",
    "delta.commit.linked",
    "stream.sink.committed",
    "stream.synced_after_commit",
    "stream.commits.written",
]
DELAY = 20
REACH = 15
START = 1704100000


def stamp(second):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + second))


def write(folder, number, rows):
    os.makedirs(folder, exist_ok=True)
    hidden = os.path.join(folder, ".%d.tmp" % number)
    with open(hidden, "w") as f:
        for row in rows:
            f.write(json.dumps(row) + "\n")
    os.rename(hidden, os.path.join(folder, "%05d.json" % number))


def start(spark, root):
    sides = {}
    for side in ("l", "r"):
        os.makedirs(root + "/" + side, exist_ok=True)
        schema = "%sk int, %st timestamp, %sv long" % (side, side, side)
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(root + "/" + side)
        sides[side] = stream.withWatermark(side + "t", "%d seconds" % DELAY)
    from pyspark.sql import functions as F

    within = F.expr("lk = rk AND rt >= lt AND rt <= lt + INTERVAL %d SECONDS" % REACH)
    joined = sides["l"].join(sides["r"], within, "left").select("lv", "rv")
    writer = joined.writeStream.format("delta").option("checkpointLocation", root + "/cp").trigger(availableNow=True)
    return writer.start(root + "/out")


def expected(rows):
    pairs = []
    for left in rows["l"]:
        met = [r["rv"] for r in rows["r"] if r["rk"] == left["lk"] and 0 <= r["s"] - left["s"] <= REACH]
        pairs += [(left["lv"], right) for right in met] or [(left["lv"], None)]
    return sorted(pairs, key=str)


def test_pairs_come_once_whatever_is_killed(folder):
    root = folder + "/data"
    os.makedirs(root)
    chance = random.Random(7)
    rows = {"l": [], "r": []}
    clock = 100
    values = 0
    number = 0

    def feed(files):
        nonlocal clock, values, number
        for _ in range(files):
            for side in ("l", "r"):
                made = []
                for _ in range(chance.randint(1, 4)):
                    clock += chance.randint(0, 3)
                    second = clock - chance.randint(0, 17)
                    row = {side + "k": chance.randint(0, 2), side + "t": stamp(second), side + "v": values}
                    made.append(row)
                    rows[side].append(dict(row, s=second))
                    values += 1
                write("%s/%s" % (root, side), number, made)
            number += 1

    died = 0
    for point in FAILPOINTS:
        feed(3)
        server = Server(folder, env={"FLEUVE_FAILPOINTS": "%s=kill@%d" % (point, chance.randint(1, 3))})
        try:
            start(server.session(), root).awaitTermination(60)
        except PySparkException:
            pass
        except Exception:  # the server died under the client
            pass
        if server.process.poll() is not None:
            died += 1
        server.kill()
    assert died >= len(FAILPOINTS) // 2, died
    # A last row on either side moves the watermark past all others.
    for side in ("l", "r"):
        write("%s/%s" % (root, side), number, [{side + "k": 9, side + "t": stamp(clock + 1000), side + "v": -1}])
    server = Server(folder)
    try:
        spark = server.session()
        start(spark, root).awaitTermination(120)
        given = [(r.lv, r.rv) for r in spark.read.format("delta").load(root + "/out").where("lv >= 0").collect()]
        assert sorted(given, key=str) == expected(rows)
    finally:
        server.kill()
