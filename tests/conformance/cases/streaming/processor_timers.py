# transformWithStateInPandas: event time timers, how they are listed, deleted and counted; no output mode is compared.
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Timers(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.last = handle.getValueState("last", "n long")

    def out(self, key, *what):
        return pd.DataFrame({"k": [key[0]], "what": [str(what)]})

    def handleInputRows(self, key, frames, timerValues):
        last = max(int(t.timestamp() * 1000) for frame in frames for t in frame["t"])
        self.last.update((last,))
        self.handle.registerTimer(last + 60000)
        self.handle.registerTimer(last + 120000)
        if key[0] == "b":
            self.handle.deleteTimer(last + 60000)
        yield self.out(key, "rows", timerValues.getCurrentWatermarkInMs(), sorted(self.handle.listTimers()))

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        if key[0] == "a":
            self.last.clear()
        yield self.out(key, "timer", expiredTimerInfo.getExpiryTimeInMs(), timerValues.getCurrentWatermarkInMs(),
                       self.last.get(), sorted(self.handle.listTimers()))

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
SENT = [[("10:00", "a"), ("10:02", "b"), ("10:01", "a")], [("10:12", "a")], [("10:01", "late"), ("10:30", "c")]]
for number, batch in enumerate(SENT):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"k": k, "t": "2024-01-01 %s:00" % t} for t, k in batch])
    os.utime(path, (1700000000 + number, 1700000000 + number))
for declared, mode in (("Update", "update"), ("Append", "append"), ("Append", "update")):
    stream = spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1).json(tmp + "/in")
    out = stream.withWatermark("t", "5 minutes").groupBy("k").transformWithStateInPandas(
        Timers(), "k string, what string", declared, "EventTime"
    )
    name = declared + mode
    query = out.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start()
    query.awaitTermination(90)
    print("#", declared, mode)
    for line in rows(spark.table(name)):
        print(line)
    for p in query.recentProgress:
        s = p.stateOperators[0]
        counts = {k: s.customMetrics[k] for k in ("numRegisteredTimers", "numDeletedTimers")}
        print(p.batchId, p.numInputRows, s.numRowsTotal, s.numRowsUpdated, s.numRowsRemoved, counts)
