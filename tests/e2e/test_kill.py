"""Kills the process at every step of the commit order and at random moments, restarts it, and counts: each input row is in
the table exactly once and the checkpoint stays readable. Then: a stopped process and a second one on its checkpoint, and
the orderly end."""

import json
import os
import random
import signal
import threading
import time

import pytest
from pyspark.errors import PySparkException

from conftest import Server

# Every place on the way of a batch where a crash could leave something half done.
FAILPOINTS = [
    "checkpoint.metadata.before",
    "checkpoint.metadata.written",
    "checkpoint.metadata.synced",
    "stream.initialized",
    "stream.offsets.planned",
    "checkpoint.offsets.before",
    "checkpoint.offsets.written",
    "stream.offsets.written",
    "delta_sink.files_written",
    "delta.commit.staged",
    "stream.batch.run",
    "stream.synced_before_commit",
    "delta.commit.link",
    "delta.commit.linked",
    "stream.sink.committed",
    "stream.synced_after_commit",
    "checkpoint.commits.before",
    "checkpoint.commits.written",
    "stream.commits.written",
]


def write_rows(folder, number, count=3):
    """One input file with rows of its own, moved into place whole."""
    os.makedirs(folder, exist_ok=True)
    hidden = os.path.join(folder, ".%d.tmp" % number)
    with open(hidden, "w") as f:
        for row in range(count):
            f.write(json.dumps({"id": number * 100 + row}) + "\n")
    os.rename(hidden, os.path.join(folder, "%05d.json" % number))


def files_to_delta(spark, root):
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 2).json(root + "/in")
    return stream.writeStream.format("delta").option("checkpointLocation", root + "/cp"), root + "/out"


def auto_loader_to_delta(spark, root):
    stream = (
        spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        .option("cloudFiles.schemaLocation", root + "/schema").option("cloudFiles.maxFilesPerTrigger", 2)
        .schema("id long").load(root + "/in")
    )
    return stream.writeStream.format("delta").option("checkpointLocation", root + "/cp"), root + "/out"


def check_checkpoint(checkpoint):
    """Every entry parses; batches are numbered without gaps."""
    for name in ("offsets", "commits"):
        ids = sorted(int(n) for n in os.listdir(checkpoint + "/" + name) if n.isdigit())
        assert ids == list(range(ids[0], ids[-1] + 1)), (name, ids)
        for number in ids:
            lines = open("%s/%s/%d" % (checkpoint, name, number)).read().split("\n")
            assert lines[0] == "v1"
            for line in lines[1:]:
                json.loads(line)
    assert json.load(open(checkpoint + "/metadata"))["id"]


def one_life(folder, root, pipeline, env, feed, live_s):
    """Starts a server and the query, writes input meanwhile, kills the server after `live_s` if it still lives."""
    server = Server(folder, env=env)
    try:
        def start():
            try:
                spark = server.session()
                writer, out = pipeline(spark, root)
                writer.start(out)
            except Exception:  # the server died under the client
                pass

        client = threading.Thread(target=start, daemon=True)
        client.start()
        began = time.time()
        while server.process.poll() is None and time.time() - began < live_s:
            feed()
            time.sleep(0.02)
        server.kill()
        client.join(20)
        return server.process.returncode
    finally:
        if server.process.poll() is None:
            server.kill()


@pytest.mark.parametrize("pipeline", [files_to_delta, auto_loader_to_delta])
def test_killed_at_any_moment(folder, pipeline, request):
    kills = max(20, int(request.config.getoption("--kills")) // 2)
    root = folder + "/data"
    os.makedirs(root)
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    written = []

    def feed():
        if chance.random() < 0.4:
            write_rows(root + "/in", len(written))
            written.append(len(written))

    write_rows(root + "/in", 0)
    written.append(0)
    hit = {}
    at_random = 0
    again = [point for point in FAILPOINTS if "metadata" not in point]  # metadata is written once in a checkpoint's life
    for life in range(kills):
        if life < len(FAILPOINTS) or life % 2:
            point = FAILPOINTS[life] if life < len(FAILPOINTS) else chance.choice(again)
            # Some places are passed once in a life, the others in every batch.
            passes = 1 if "metadata" in point or point == "stream.initialized" else chance.randint(1, 3)
            env = {"FLEUVE_FAILPOINTS": "%s=kill@%d" % (point, passes)}
            began = time.time()
            one_life(folder, root, pipeline, env, feed, 15)
            if time.time() - began < 15:
                hit[point] = hit.get(point, 0) + 1
        else:
            at_random += 1
            one_life(folder, root, pipeline, {}, feed, chance.uniform(0.05, 1.0))
    server = Server(folder)
    try:
        spark = server.session()
        writer, out = pipeline(spark, root)
        query = writer.trigger(availableNow=True).start(out)
        assert query.awaitTermination(120), "the last run did not end (seed %d)" % seed
        ids = sorted(r.id for r in spark.read.format("delta").load(out).collect())
        expected = sorted(number * 100 + row for number in written for row in range(3))
        assert ids == expected, "seed %d: %d rows for %d" % (seed, len(ids), len(expected))
        check_checkpoint(root + "/cp")
        versions = [v.version for v in spark.sql("DESCRIBE HISTORY delta.`%s`" % out).select("version").collect()]
        assert sorted(versions) == list(range(len(versions)))
        print("\n%s, seed %d: killed %d times, %d times at %d places of the commit path and %d times at random; %d files, "
              "%d rows, each once; %d table versions; the checkpoint reads well" % (
                  pipeline.__name__, seed, sum(hit.values()) + at_random, sum(hit.values()), len(hit), at_random,
                  len(written), len(ids), len(versions)))
    finally:
        server.kill()
    # Places that are passed in every life must have been hit, or the test proves nothing.
    missed = set(FAILPOINTS) - set(hit) - {"checkpoint.metadata.before", "checkpoint.metadata.written"}
    assert not missed, "never reached: %s" % sorted(missed)


def test_a_stopped_process_keeps_its_checkpoint(folder):
    """SIGSTOP in mid-batch, a second process on the same checkpoint, SIGCONT."""
    root = folder + "/data"
    write_rows(root + "/in", 0)
    other_folder = folder + "/other"
    os.makedirs(other_folder)
    # The first process stops itself between its data files and its commit.
    first = Server(folder, env={"FLEUVE_FAILPOINTS": "stream.synced_before_commit=stop@2"})
    second = Server(other_folder)
    try:
        writer, out = files_to_delta(first.session(), root)
        writer.start(out)
        deadline = time.time() + 20
        number = 1
        while open("/proc/%d/stat" % first.pid).read().split(") ")[1][0] != "T":
            assert time.time() < deadline, "the first process did not reach its second commit"
            write_rows(root + "/in", number)
            number += 1
            time.sleep(0.1)
        spark = second.session()
        writer, out = files_to_delta(spark, root)
        with pytest.raises(PySparkException) as refused:
            writer.start(out)
        assert "FLEUVE_CHECKPOINT_IN_USE" in str(refused.value)
        assert "process %d " % first.pid in str(refused.value)
        os.kill(first.pid, signal.SIGCONT)
        expected = sorted(n * 100 + row for n in range(number) for row in range(3))
        while time.time() < deadline + 20:
            ids = sorted(r.id for r in spark.read.format("delta").load(out).collect())
            if len(ids) >= len(expected):
                break
            time.sleep(0.1)
        assert ids == expected
        first.kill()
        write_rows(root + "/in", number)
        writer, out = files_to_delta(spark, root)
        assert writer.trigger(availableNow=True).start(out).awaitTermination(60)
        ids = sorted(r.id for r in spark.read.format("delta").load(out).collect())
        assert ids == sorted(expected + [number * 100 + row for row in range(3)])
    finally:
        os.kill(first.pid, signal.SIGCONT) if first.process.poll() is None else None
        first.kill()
        second.kill()


def test_sigterm_ends_between_batches(folder):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    server = Server(folder)
    spark = server.session()
    writer, out = files_to_delta(spark, root)
    query = writer.start(out)
    query.processAllAvailable()
    for number in range(1, 6):
        write_rows(root + "/in", number)
    began = time.time()
    assert server.stop() == 0, open(server.log_path).read()[-3000:]
    assert time.time() - began < 5
    check_checkpoint(root + "/cp")
    offsets = {n for n in os.listdir(root + "/cp/offsets") if n.isdigit()}
    commits = {n for n in os.listdir(root + "/cp/commits") if n.isdigit()}
    assert offsets == commits, "a batch was cut off although there was time to finish it"


def test_a_second_start_in_one_process_takes_over(spark, folder):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    writer, out = files_to_delta(spark, root)
    first = writer.start(out)
    first.processAllAvailable()
    writer, out = files_to_delta(spark, root)
    second = writer.start(out)
    assert not first.isActive and first.exception() is None
    assert second.isActive and second.id == first.id and second.runId != first.runId
    write_rows(root + "/in", 1)
    second.processAllAvailable()
    second.stop()
    assert spark.read.format("delta").load(out).count() == 6
