# transformWithStateInPandas: rows at or below the watermark of the batch before are dropped and counted in EventTime mode
# only.
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


def executed(query):
    """The progress records of the batches that had rows."""
    return [p for p in query.recentProgress if p.numInputRows > 0]


class Seen(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "text string")

    def handleInputRows(self, key, frames, timers):
        seen = self.seen.get()[0] if self.seen.exists() else ""
        times = [str(t)[11:16] if t is not None and not pd.isna(t) else "-" for frame in frames for t in frame["t"]]
        seen = (seen + " " + " ".join(sorted(times))).strip()
        self.seen.update((seen,))
        yield pd.DataFrame({"k": [key[0]], "seen": [seen]})

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
# Or batches without rows would follow for ever where the timeout is by the clock.
spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
SENT = [
    [("12:00", "a"), ("12:30", "b")],
    [("12:30", "b")],
    [("12:19", "a"), ("12:20", "a"), ("12:21", "a"), (None, "a"), ("12:00", "late")],
    [("12:10", "a"), ("12:10", "b")],
    [("12:40", "a")],
]
for mode in ("None", "EventTime", "ProcessingTime"):
    folder = tmp + "/" + mode
    os.makedirs(folder)
    stream = spark.readStream.schema("t timestamp, k string").json(folder).withWatermark("t", "10 minutes")
    out = stream.groupBy("k").transformWithStateInPandas(Seen(), "k string, seen string", "Update", mode)
    query = out.writeStream.format("memory").queryName("seen" + mode).outputMode("update").start()
    for number, lines in enumerate(SENT):
        write_lines("%s/%d.json" % (folder, number), [{"t": t and "2024-01-01 %s:00" % t, "k": k} for t, k in lines])
        query.processAllAvailable()
    print("#", mode)
    for line in rows(spark.table("seen" + mode)):
        print(line)
    for p in executed(query):
        s = p.stateOperators[0]
        print(p.numInputRows, p.eventTime.get("watermark"), s.numRowsTotal, s.numRowsDroppedByWatermark)
    query.stop()
