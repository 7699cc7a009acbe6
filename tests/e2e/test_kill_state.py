"""Kills the process at every step of a batch with state and at random moments: the state goes with the sink, so counts,
windows, first rows, pairs and sessions come out as if nothing had happened, with rows in memory and with rows on disk."""

import json
import os
import random
import threading

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
    """Six rows of file `number`: ids come twice, in two files that follow each other, always with the same key; a key is
    missing in two files of every fourteen. Times go on by a minute a file."""
    os.makedirs(folder, exist_ok=True)
    rows = []
    for i in range(6):
        at = number * MINUTE + i
        key = "k%d" % ((number // 2 + i) % 7) + "." * 300
        rows.append({"id": (number // 2) * 10 + i, "k": key, "n": number + i,
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
    stream = read(spark, root).dropDuplicates(["id", "k"]).groupBy("k").agg(F.count("*").alias("c"), F.sum("n").alias("n"), F.avg("n").alias("a"))
    return stream.writeStream.outputMode("complete")


def windows(spark, root):
    """Windows that come out once, after the watermark."""
    stream = read(spark, root).withWatermark("t", "30 seconds").groupBy(F.window("t", "2 minutes"), "k")
    return stream.agg(F.sum("n").alias("n"), F.collect_list("n").alias("l")).selectExpr("window.start AS s", "k", "n", "l").writeStream


def firsts(spark, root):
    """First rows of keys that are kept for a time."""
    return read(spark, root).withWatermark("t", "3 minutes").dropDuplicatesWithinWatermark(["id", "k"]).select("id", "n").writeStream


def pairs(spark, root):
    """Rows of one id that meet within three minutes, or the lonely ones after it."""
    left = read(spark, root).withWatermark("t", "30 seconds").selectExpr("id AS l_id", "k", "n AS l_n", "t AS l_t")
    right = read(spark, root).withWatermark("t", "30 seconds").where("n % 3 = 0").selectExpr("id AS r_id", "n AS r_n", "t AS r_t")
    meets = F.expr("l_id = r_id AND r_t >= l_t AND r_t <= l_t + INTERVAL 3 MINUTES")
    return left.join(right, meets, "left_outer").select("l_id", "l_n", "r_n").writeStream


def sessions(spark, root):
    """Sessions that end when two minutes are without a row."""
    stream = read(spark, root).withWatermark("t", "30 seconds").groupBy(F.session_window("t", "2 minutes"), "k")
    return stream.agg(F.count("*").alias("c"), F.sum("n").alias("n")).selectExpr("session_window.end AS s", "k", "c", "n").writeStream


def minute_of(row):
    return int(row["t"][11:13]) * 60 + int(row["t"][14:16])


def expected(pipeline, rows):
    newest = max(map(minute_of, rows))
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
            out.setdefault((minute_of(row) // 2 * 2, row["k"]), []).append(row["n"])
        return sorted((m, k, sum(l), l) for (m, k), l in out.items() if m + 2 < newest // 2 * 2)
    if pipeline is pairs:
        by_id, out = {}, []
        for row in rows:
            if row["n"] % 3 == 0:
                by_id.setdefault(row["id"], []).append(row)
        for row in rows:
            second = int(row["t"][17:19])
            at = minute_of(row) * 60 + second
            found = [r["n"] for r in by_id.get(row["id"], ()) if at <= minute_of(r) * 60 + int(r["t"][17:19]) <= at + 180]
            out += [(row["id"], row["n"], n) for n in found] or [(row["id"], row["n"], -1)]
        return sorted(row for row in out if row[2] != -1 or row[1] < newest - LAST)
    if pipeline is sessions:
        out, open_now = [], {}
        for row in rows:
            at = minute_of(row) * 60 + int(row["t"][17:19])
            one = open_now.get(row["k"])
            if one is None or at > one[3]:
                one = open_now[row["k"]] = [at, 0, 0, 0]
                out.append((one, row["k"]))
            one[1:] = [one[1] + 1, one[2] + row["n"], at + 120]
        return sorted((one[3], k, one[1], one[2]) for one, k in out if one[3] < (newest - 2) * 60)
    seen, out = set(), []
    for row in rows:
        if row["id"] not in seen:
            seen.add(row["id"])
            out.append((row["id"], row["n"]))
    return sorted(out)


# Rows of the last minutes may not have come out yet.
LAST = 12


def found(pipeline, spark, out, rows):
    got = [tuple(row) for row in spark.read.format("delta").load(out).collect()]
    newest = max(map(minute_of, rows))
    if pipeline is windows:
        got = [(s.hour * 60 + s.minute, k, n, l) for s, k, n, l in got]
        got = [row for row in got if row[0] + 2 < newest // 2 * 2]
    if pipeline is sessions:
        got = [(s.hour * 3600 + s.minute * 60 + s.second, k, c, n) for s, k, c, n in got]
        got = [row for row in got if row[0] < (newest - 2) * 60]
    if pipeline is pairs:
        got = [(i, n, -1 if m is None else m) for i, n, m in got]
        got = [row for row in got if row[2] != -1 or row[1] < newest - LAST]
    return sorted(got)


def run(server, pipeline, root, conf):
    """True where the query ended by itself."""
    try:
        spark = server.session()
        for key, value in conf.items():
            spark.conf.set(key, value)
        writer = pipeline(spark, root).format("delta").option("checkpointLocation", root + "/cp")
        writer = writer.trigger(availableNow=True)
        query = writer.start(root + "/out")
        return query.awaitTermination(60)
    except PySparkException:
        raise
    except Exception:  # the server died under the client
        return False


PIPELINES = [totals, windows, firsts, pairs, sessions]

# Rows in memory, and with room for a few of them.
SPILLING = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "fleuve.state.memoryLimit": "8k",
}


@pytest.mark.parametrize("conf", [{}, SPILLING], ids=["memory", "spilling"])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_state_survives_kills(folder, pipeline, conf, request):
    """At every place once; then (`--kills` for all pipelines together) at places and moments drawn at random."""
    root = folder + "/data"
    os.makedirs(root)
    seed = 7 if request.config.getoption("--kills") <= 20 else random.randrange(1 << 30)
    chance = random.Random(seed)
    rows = []
    files = 0
    killed = {}
    lives = max(len(FAILPOINTS), int(request.config.getoption("--kills")) // (2 * len(PIPELINES)))
    for life in range(lives):
        for _ in range(2):
            rows += write_rows(root + "/in", files)
            files += 1
        point = FAILPOINTS[life] if life < len(FAILPOINTS) else chance.choice(FAILPOINTS + ["any moment"] * len(FAILPOINTS))
        env = {} if point == "any moment" else {"FLEUVE_FAILPOINTS": "%s=kill@%d" % (point, chance.randint(1, 2))}
        server = Server(folder, env=env)
        killer = threading.Timer(chance.uniform(0.05, 0.6), server.process.kill)
        try:
            if point == "any moment":
                killer.start()
            run(server, pipeline, root, conf)
        except PySparkException as e:
            assert server.process.poll() is not None, "%s (seed %d): %s" % (point, seed, e)
        finally:
            killer.cancel()
            if server.process.poll() is None:
                server.kill()
            else:
                killed[point] = killed.get(point, 0) + 1
    rows += write_rows(root + "/in", files)
    server = Server(folder)
    try:
        assert run(server, pipeline, root, conf)
        got, wanted = found(pipeline, server.session(), root + "/out", rows), expected(pipeline, rows)
        assert got == wanted, "seed %d" % seed
        print("\n%s, seed %d: killed %d times at %d places; %d rows of %d, as if nothing had happened" % (
            pipeline.__name__, seed, sum(killed.values()), len(killed), len(got), len(rows)))
    finally:
        server.kill()
    # One committed attempt per version, and nothing of those that were given up but perhaps the newest.
    for operator in os.listdir(root + "/cp/state"):
        versions = [name.split("_")[0] for name in os.listdir(root + "/cp/state/" + operator) if name.endswith(".changes")]
        assert len(versions) == len(set(versions)), versions
