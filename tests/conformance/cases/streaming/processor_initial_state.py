# transformWithStateInPandas with an initial state: given before the rows of its key, in the first batch only; timers of it.
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Totals(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.total = handle.getValueState("total", "n long")

    def handleInitialState(self, key, initialState, timerValues):
        self.total.update((int(initialState["start"].sum()),))
        if key[0] == "z":
            self.handle.registerTimer(1704103320000)

    def handleInputRows(self, key, frames, timerValues):
        before = self.total.get()[0] if self.total.exists() else -1
        total = max(before, 0) + sum(int(frame["n"].sum()) for frame in frames)
        self.total.update((total,))
        yield pd.DataFrame({"k": [key[0]], "before": [before], "total": [total]})

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield pd.DataFrame({"k": ["timer of " + key[0]], "before": [self.total.get()[0]], "total": [0]})

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
SENT = [[("10:00", "a", 1), ("10:00", "b", 2)], [("10:20", "a", 3), ("10:20", "z", 4)]]
for number, batch in enumerate(SENT):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"t": "2024-01-01 %s:00" % t, "k": k, "n": n} for t, k, n in batch])
    os.utime(path, (1700000000 + number, 1700000000 + number))
initial = spark.createDataFrame([("a", 10), ("a", 5), ("z", 7)], "key string, start long").groupBy("key")
stream = spark.readStream.schema("t timestamp, k string, n long").option("maxFilesPerTrigger", 1).json(tmp + "/in")
totals = stream.withWatermark("t", "5 minutes").groupBy("k").transformWithStateInPandas(
    Totals(), "k string, before long, total long", "Update", "EventTime", initialState=initial
)
query = totals.writeStream.format("memory").queryName("totals").outputMode("update").trigger(availableNow=True).start()
query.awaitTermination(90)
for line in rows(spark.table("totals")):
    print(line)
for p in query.recentProgress:
    s = p.stateOperators[0]
    print(p.batchId, p.numInputRows, s.operatorName, s.numRowsTotal)
