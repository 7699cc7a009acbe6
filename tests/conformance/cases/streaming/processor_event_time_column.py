# transformWithStateInPandas: an event time column of its output carries the watermark to a window aggregation above it.
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor


class Latest(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(self, key, frames, timerValues):
        latest = max(t for frame in frames for t in frame["t"])
        self.count.update(((self.count.get()[0] if self.count.exists() else 0) + 1,))
        yield pd.DataFrame({"k": [key[0]], "at": [latest], "calls": [self.count.get()[0]]})

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
SENT = [[("10:00", "a"), ("10:02", "b")], [("10:12", "a")], [("10:30", "c")]]
for number, batch in enumerate(SENT):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"k": k, "t": "2024-01-01 %s:00" % t} for t, k in batch])
    os.utime(path, (1700000000 + number, 1700000000 + number))


def latest(column, marked=True):
    stream = spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1).json(tmp + "/in")
    stream = stream.withWatermark("t", "5 minutes") if marked else stream
    return stream.groupBy("k").transformWithStateInPandas(
        Latest(), "k string, at timestamp, calls long", "Append", "EventTime", eventTimeColumnName=column
    )


def start(df, name):
    return df.writeStream.format("memory").queryName(name).outputMode("append").trigger(availableNow=True).start()


query = start(latest("at").groupBy(F.window("at", "10 minutes")).agg(F.sum("calls")), "windows")
query.awaitTermination(90)
for line in rows(spark.table("windows")):
    print(line)
for p in query.recentProgress:
    print(p.batchId, p.numInputRows, [s.operatorName for s in p.stateOperators], [s.numRowsTotal for s in p.stateOperators])
error(lambda: start(latest("nope"), "bad2").awaitTermination(90), "no column")
error(lambda: start(latest("at", False), "bad3").awaitTermination(90), "no watermark")
