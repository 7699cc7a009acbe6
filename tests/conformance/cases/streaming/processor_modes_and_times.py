# transformWithStateInPandas: time modes and what they give, unknown modes refused, aggregates above it.
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Seen(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "n long")

    def handleInputRows(self, key, frames, timerValues):
        self.seen.update((1,))
        times = (timerValues.getCurrentProcessingTimeInMs() > 0, timerValues.getCurrentWatermarkInMs())
        yield pd.DataFrame({"k": [key[0]], "times": [str(times)]})

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
)
for number, time in enumerate(["10:00", "10:10"]):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"k": "a", "t": "2024-01-01 %s:00" % time}])
    os.utime(path, (1700000000 + number, 1700000000 + number))


def seen(output, mode):
    stream = spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1).json(tmp + "/in")
    keyed = stream.withWatermark("t", "5 minutes").groupBy("k")
    return keyed.transformWithStateInPandas(Seen(), "k string, times string", output, mode)


def run(label, df, mode="update"):
    query = df.writeStream.format("memory").queryName("q" + label).outputMode(mode).trigger(availableNow=True).start()
    query.awaitTermination(90)
    print("#", label, rows(spark.table("q" + label)))
    print([(p.batchId, p.numInputRows) for p in query.recentProgress if "addBatch" in p.durationMs])


run("None", seen("Update", "None"))
spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
run("EventTime", seen("Update", "EventTime"))
run("ProcessingTime", seen("Update", "ProcessingTime"))
run("complete", seen("Append", "None").groupBy("k").count(), "complete")
error(lambda: run("x", seen("Update", "Sometimes")), "time mode")
error(lambda: run("x", seen("Sometimes", "None")), "output mode")
error(lambda: run("x", seen("Append", "None"), "complete"), "complete")
