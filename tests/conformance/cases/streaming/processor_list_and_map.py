# transformWithStateInPandas: list and map state, what their methods give, and how their rows are counted.
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Lists(StatefulProcessor):
    def init(self, handle):
        self.items = handle.getListState("items", "n long")

    def handleInputRows(self, key, frames, timerValues):
        for frame in frames:
            for n in frame["n"]:
                self.items.appendValue((n,))
        if key[0] == "b":
            self.items.appendList([(7,), (8,)])
        yield pd.DataFrame({"k": [key[0]], "seen": [str((self.items.exists(), list(self.items.get())))]})

    def close(self):
        pass


class Maps(StatefulProcessor):
    def init(self, handle):
        self.counts = handle.getMapState("counts", "word string", "n long, last string")

    def handleInputRows(self, key, frames, timerValues):
        for frame in frames:
            for n in frame["n"]:
                word = ("w%d" % (n % 2),)
                before = self.counts.getValue(word)
                self.counts.updateValue(word, ((before[0] if before else 0) + 1, str(n)))
        seen = (self.counts.containsKey(("w0",)), self.counts.getValue(("w1",)), sorted(self.counts.keys()),
                sorted(self.counts.values()), sorted(self.counts.iterator()))
        if key[0] == "b":
            self.counts.removeKey(("w0",))
        if key[0] == "c":
            self.counts.clear()
        yield pd.DataFrame({"k": [key[0]], "seen": [str((seen, self.counts.exists()))]})

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
SENT = [[("a", 1), ("a", 2), ("b", 2), ("b", 4), ("c", 3)], [("a", 3), ("b", 2)]]
for number, batch in enumerate(SENT):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"k": k, "n": n} for k, n in batch])
    os.utime(path, (1700000000 + number, 1700000000 + number))
for name, processor in (("lists", Lists()), ("maps", Maps())):
    stream = spark.readStream.schema("k string, n long").option("maxFilesPerTrigger", 1).json(tmp + "/in")
    out = stream.groupBy("k").transformWithStateInPandas(processor, "k string, seen string", "Update", "None")
    query = out.writeStream.format("memory").queryName(name).outputMode("update").trigger(availableNow=True).start()
    query.awaitTermination(90)
    print("#", name)
    for line in rows(spark.table(name)):
        print(line)
    for p in query.recentProgress:
        s = p.stateOperators[0]
        print(p.batchId, p.numInputRows, s.numRowsTotal, s.numRowsUpdated)
