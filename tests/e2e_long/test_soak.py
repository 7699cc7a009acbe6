"""Streams that run for half an hour: what they hold in memory and how long a batch takes stay as they were.

FLEUVE_SOAK_SECONDS shortens or lengthens it (1800).
"""

import json
import os
import statistics
import threading
import time

from pyspark.sql import functions as F

SECONDS = int(os.environ.get("FLEUVE_SOAK_SECONDS", "1800"))
FILES_PER_SECOND = 2
ROWS_PER_FILE = 500
KEYS = 1000


class Writer(threading.Thread):
    """Puts JSON files into a folder at an even pace, each by a rename, until told to end."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.files, self.ends = folder, 0, threading.Event()

    def run(self):
        began = time.monotonic()
        while not self.ends.wait(max(0.0, began + self.files / FILES_PER_SECOND - time.monotonic())):
            second = 1_700_000_000 + self.files // FILES_PER_SECOND
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
            first = self.files * ROWS_PER_FILE
            lines = [
                json.dumps({"id": first + i, "key": (first + i * 7) % KEYS, "at": stamp, "amount": i % 100})
                for i in range(ROWS_PER_FILE)
            ]
            name = "%09d.json" % self.files
            with open(os.path.join(self.folder, "_" + name), "w") as f:
                f.write("\n".join(lines) + "\n")
            os.rename(os.path.join(self.folder, "_" + name), os.path.join(self.folder, name))
            self.files += 1


def resident_mb(pid):
    """Of a process and all below it."""
    pages = 0
    todo = [pid]
    while todo:
        pid = todo.pop()
        try:
            with open("/proc/%d/statm" % pid) as f:
                pages += int(f.read().split()[1])
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                    todo += [int(child) for child in f.read().split()]
        except FileNotFoundError:
            pass
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def thirds(values):
    third = len(values) // 3
    return values[:third], values[third:-third], values[-third:]


def test_memory_and_latency_stay_flat(server, folder):
    spark = server.session()
    landing, tables = os.path.join(folder, "landing"), os.path.join(folder, "tables")
    os.makedirs(landing)
    spark.sql("CREATE TABLE latest (key BIGINT, id BIGINT, amount BIGINT)")
    spark.sql("INSERT INTO latest SELECT id, -1, 0 FROM range(%d)" % KEYS)

    writer = Writer(landing)
    writer.start()
    raw = (
        spark.readStream.format("cloudFiles")
        .option("cloudFiles.format", "json")
        .schema("id BIGINT, key BIGINT, at TIMESTAMP, amount BIGINT")
        .load(landing)
    )

    def write(df, name):
        return df.writeStream.option("checkpointLocation", os.path.join(tables, name + "-checkpoint"))

    bronze = write(raw, "bronze").start(os.path.join(tables, "bronze"))
    while not any(progress.numInputRows for progress in bronze.recentProgress):
        time.sleep(0.1)
    events = spark.readStream.format("delta").load(os.path.join(tables, "bronze"))
    counts = (
        events.withWatermark("at", "20 seconds")
        .dropDuplicatesWithinWatermark(["id"])
        .groupBy(F.window("at", "10 seconds"), "key")
        .agg(F.count("*").alias("n"), F.sum("amount").alias("amount"))
    )
    windows = write(counts, "windows").outputMode("append").start(os.path.join(tables, "windows"))

    def upsert(batch, number):
        newest = batch.groupBy("key").agg(F.max_by("id", "id").alias("id"), F.max_by("amount", "id").alias("amount"))
        newest.createOrReplaceTempView("newest")
        batch.sparkSession.sql(
            "MERGE INTO latest t USING newest s ON t.key = s.key "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    merged = write(events, "merge").trigger(processingTime="2 seconds").foreachBatch(upsert).start()
    queries = {"bronze": bronze, "windows": windows, "merge": merged}

    memory, durations, seen = [], {name: [] for name in queries}, {name: -1 for name in queries}
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        time.sleep(min(5, SECONDS / 60))
        memory.append(resident_mb(server.pid))
        for name, query in queries.items():
            assert query.isActive, query.exception()
            for progress in query.recentProgress:
                if progress.batchId > seen[name] and progress.numInputRows:
                    seen[name] = progress.batchId
                    durations[name].append(progress.batchDuration)
    writer.ends.set()
    writer.join()
    for query in queries.values():
        query.processAllAvailable()
        query.stop()

    rows = writer.files * ROWS_PER_FILE
    bronze_rows = spark.read.format("delta").load(os.path.join(tables, "bronze"))
    assert bronze_rows.agg(F.count("*"), F.count_distinct("id"), F.max("id")).first() == (rows, rows, rows - 1)
    closed = spark.read.format("delta").load(os.path.join(tables, "windows")).agg(F.sum("n"), F.max("window.end")).first()
    assert closed[0] == bronze_rows.where(F.col("at") < F.lit(closed[1])).count()
    newest = bronze_rows.groupBy("key").agg(F.max("id").alias("id"))
    assert newest.exceptAll(spark.table("latest").select("key", "id")).count() == 0

    first, _, last = (statistics.median(part) for part in thirds(memory))
    print("%d files, %d rows; resident %.0f, then %.0f MB" % (writer.files, rows, first, last))
    flat = last < first * 1.15 + 30
    for name, values in durations.items():
        begins, _, now = (statistics.median(part) for part in thirds(values))
        print("%s: %d batches, median %d, then %d ms" % (name, len(values), begins, now))
        flat = flat and now < begins * 1.5 + 5
    assert flat
