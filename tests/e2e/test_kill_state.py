"""Kills the process at every step of a batch with state and at random moments: the state goes with the sink, so counts,
windows and first rows come out as if nothing had happened."""

import json
import os
import random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from conftest import Server

FAILPOINTS = [
    "stream.offsets.written",
    "operators.run",
    "stream.state.run",
    "delta_sink.files_written",
    "stream.batch.run",
    "state.stage",
    "stream.state.staged",
    "stream.synced_before_commit",
    "delta.commit.linked",
    "stream.sink.committed",
    "stream.synced_after_commit",
    "state.snapshot",
    "checkpoint.commits.before",
    "stream.commits.written",
]
MINUTE = 60


def write_rows(folder, number):
    """Six rows of file `number`: ids come twice, in this file and in the next but one; times go on by a minute a file."""
    os.makedirs(folder, exist_ok=True)
    rows = []
    for i in range(6):
        at = number * MINUTE + i
        rows.append({"id": (number // 2) * 10 + i, "k": "k%d" % (i % 4), "n": number + i,
                     "t": "2024-01-01 %02d:%02d:%02d" % (at // 3600, at // 60 % 60, at % 60)})
    hidden = os.path.join(folder, ".%d.tmp" % number)
    with open(hidden, "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
    os.rename(hidden, os.path.join(folder, "%05d.json" % number))
    return rows


def read(spark, root):
    return spark.readStream.schema("id long, k string, n long, t timestamp").option("maxFilesPerTrigger", 1).json(root + "/in")


def totals(spark, root):
    """Deduplication and a running aggregate, the whole result each time."""
    stream = read(spark, root).dropDuplicates(["id"]).groupBy("k").agg(F.count("*").alias("c"), F.sum("n").alias("n"), F.avg("n").alias("a"))
    return stream.writeStream.outputMode("complete")


def windows(spark, root):
    """Windows that come out once, after the watermark."""
    stream = read(spark, root).withWatermark("t", "30 seconds").groupBy(F.window("t", "2 minutes"), "k")
    return stream.agg(F.sum("n").alias("n"), F.collect_list("n").alias("l")).selectExpr("window.start AS s", "k", "n", "l").writeStream


def firsts(spark, root):
    """First rows of keys that are kept for a time."""
    return read(spark, root).withWatermark("t", "3 minutes").dropDuplicatesWithinWatermark(["id"]).select("id", "n").writeStream


def expected(pipeline, rows):
    if pipeline is totals:
        seen, out = {}, {}
        for row in rows:
            if row["id"] not in seen:
                seen[row["id"]] = row
                c, n = out.get(row["k"], (0, 0))
                out[row["k"]] = (c + 1, n + row["n"])
        return sorted((k, c, n, n / c) for k, (c, n) in out.items())
    if pipeline is windows:
        out = {}
        for row in rows:
            minute = int(row["t"][11:13]) * 60 + int(row["t"][14:16])
            out.setdefault((minute // 2 * 2, row["k"]), []).append(row["n"])
        newest = max(out)[0]
        return sorted((m, k, sum(l), l) for (m, k), l in out.items() if m + 2 < newest)
    seen, out = set(), []
    for row in rows:
        if row["id"] not in seen:
            seen.add(row["id"])
            out.append((row["id"], row["n"]))
    return sorted(out)


def found(pipeline, spark, out, rows):
    got = [tuple(row) for row in spark.read.format("delta").load(out).collect()]
    if pipeline is windows:
        got = [(s.hour * 60 + s.minute, k, n, l) for s, k, n, l in got]
        newest = max(int(r["t"][11:13]) * 60 + int(r["t"][14:16]) for r in rows) // 2 * 2
        got = [row for row in got if row[0] + 2 < newest]
    return sorted(got)


def run(server, pipeline, root):
    """True where the query ended by itself."""
    try:
        spark = server.session()
        writer = pipeline(spark, root).format("delta").option("checkpointLocation", root + "/cp")
        writer = writer.trigger(availableNow=True)
        query = writer.start(root + "/out")
        return query.awaitTermination(60)
    except PySparkException:
        raise
    except Exception:  # the server died under the client
        return False


@pytest.mark.parametrize("pipeline", [totals, windows, firsts])
def test_state_survives_kills(folder, pipeline):
    root = folder + "/data"
    os.makedirs(root)
    chance = random.Random(7)
    rows = []
    files = 0
    for point in FAILPOINTS:
        for _ in range(2):
            rows += write_rows(root + "/in", files)
            files += 1
        server = Server(folder, env={"FLEUVE_FAILPOINTS": "%s=kill@%d" % (point, chance.randint(1, 2))})
        try:
            run(server, pipeline, root)
        except PySparkException as e:
            assert server.process.poll() is not None, "%s: %s" % (point, e)
        finally:
            if server.process.poll() is None:
                server.kill()
    rows += write_rows(root + "/in", files)
    server = Server(folder)
    try:
        assert run(server, pipeline, root)
        assert found(pipeline, server.session(), root + "/out", rows) == expected(pipeline, rows)
    finally:
        server.kill()
    # One committed attempt per version, and nothing of those that were given up but perhaps the newest.
    for operator in os.listdir(root + "/cp/state"):
        versions = [name.split("_")[0] for name in os.listdir(root + "/cp/state/" + operator) if name.endswith(".changes")]
        assert len(versions) == len(set(versions)), versions
