# applyInPandasWithState: output modes, aggregations around it, time-outs without a watermark, two of them.
import pandas as pd
from pyspark.sql import functions as F

write_lines(tmp + "/in/a.json", [{"k": "a", "t": "2024-01-01 10:00:00", "n": 1}])


def same(key, frames, state):
    yield pd.DataFrame({"k": [key[0]], "n": [1]})


def stream():
    return spark.readStream.schema("t timestamp, k string, n long").json(tmp + "/in")


def marked():
    return stream().withWatermark("t", "5 minutes")


def grouped(df, mode="update", timeout="NoTimeout"):
    return df.groupBy("k").applyInPandasWithState(same, "k string, n long", "n long", mode, timeout)


def windows():
    return marked().groupBy(F.window("t", "5 minutes"), "k").count()


for label, make, mode in (
    ("event time without watermark", lambda: grouped(stream(), "update", "EventTimeTimeout"), "update"),
    ("append in update", lambda: grouped(stream(), "append"), "update"),
    ("update in append", lambda: grouped(stream(), "update"), "append"),
    ("complete in complete", lambda: grouped(stream(), "complete"), "complete"),
    ("unknown output mode", lambda: grouped(stream(), "sometimes"), "update"),
    ("unknown timeout", lambda: grouped(stream(), "update", "Never"), "update"),
    ("update below an aggregation", lambda: grouped(stream(), "update").groupBy("k").count(), "complete"),
    ("update above an aggregation", lambda: grouped(windows(), "update"), "update"),
    ("append above an aggregation", lambda: grouped(windows(), "append"), "append"),
    ("append below an aggregation", lambda: grouped(stream(), "append").groupBy("k").count(), "append"),
    ("two", lambda: grouped(grouped(stream())), "update"),
):
    error(lambda: make().writeStream.format("noop").outputMode(mode).start(), label)
    try:
        make().writeStream.format("noop").outputMode(mode).start()
    except PySparkException as e:
        print(str(e).split("\n")[0].replace("(java.lang.IllegalStateException) ", ""))
