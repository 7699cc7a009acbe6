# applyInPandasWithState: rows at or below the watermark of the batch before are dropped and counted, with a timeout by
# event time only; a row without a time, and rows of other timeouts, come through.
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout


def executed(query):
    """The progress records of the batches that had rows."""
    return [p for p in query.recentProgress if p.numInputRows > 0]


def track(key, frames, state):
    if state.hasTimedOut:
        seen = state.get[0]
        state.remove()
        yield pd.DataFrame({"k": [key[0]], "seen": ["timed out after " + seen]})
        return
    seen = state.get[0] if state.exists else ""
    times = [str(t)[11:16] if t is not None and not pd.isna(t) else "-" for frame in frames for t in frame["t"]]
    seen = (seen + " " + " ".join(sorted(times))).strip()
    state.update((seen,))
    if timeout == "EventTimeTimeout":
        state.setTimeoutTimestamp(max(state.getCurrentWatermarkMs(), 0) + 3600000)
    yield pd.DataFrame({"k": [key[0]], "seen": [seen]})


def run(name, stream, timeouts):
    global timeout
    for timeout in timeouts:
        folder = "%s/%s_%s" % (tmp, name, timeout)
        os.makedirs(folder)
        rows_in = stream(spark.readStream.schema("t timestamp, k string").json(folder))
        out = rows_in.groupBy("k").applyInPandasWithState(track, "k string, seen string", "seen string", "update", timeout)
        query = out.writeStream.format("memory").queryName(name + timeout).outputMode("update").start()
        for number, lines in enumerate(SENT):
            write_lines("%s/%d.json" % (folder, number), [{"t": t and "2024-01-01 %s:00" % t, "k": k} for t, k in lines])
            query.processAllAvailable()
        print("#", name, timeout)
        for line in rows(spark.table(name + timeout)):
            print(line)
        for p in executed(query):
            s = p.stateOperators[0]
            print(p.numInputRows, p.eventTime.get("watermark"), s.numRowsTotal, s.numRowsDroppedByWatermark)
        query.stop()


# Or batches without rows would follow for ever where the timeout is by the clock.
spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
SENT = [
    [("12:00", "a"), ("12:30", "b")],
    [("12:30", "b")],
    [("12:19", "a"), ("12:20", "a"), ("12:21", "a"), (None, "a"), ("12:00", "late")],
    [("12:10", "a"), ("12:10", "b")],
    [("12:40", "a")],
]
run("marked", lambda s: s.withWatermark("t", "10 minutes"),
    [GroupStateTimeout.NoTimeout, GroupStateTimeout.EventTimeTimeout, GroupStateTimeout.ProcessingTimeTimeout])
run("bare", lambda s: s, [GroupStateTimeout.NoTimeout])
# The time is a column of the state's groups no more, but still marked.
run("renamed", lambda s: s.withWatermark("t", "10 minutes").select("k", F.col("t").alias("when")).withColumn("t", F.col("when") + F.expr("INTERVAL 1 HOUR")),
    [GroupStateTimeout.EventTimeTimeout])
