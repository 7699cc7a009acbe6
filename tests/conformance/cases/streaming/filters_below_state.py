# What a filter above an aggregation or the keys of a join leave out reaches neither state nor watermark.
from pyspark.sql import functions as F

SENT = [[("10:00", "a"), ("10:20", "b")], [("10:12", "a"), (None, "a"), ("10:50", None)], [("10:01", "late"), ("10:30", "a")]]
OTHER = [[("10:01", "a")], [("10:22", "b"), ("10:45", None)], [("10:31", "a"), (None, "a")]]
for folder, sent in (("in", SENT), ("other", OTHER)):
    for number, batch in enumerate(sent):
        path = "%s/%s/%d.json" % (tmp, folder, number)
        write_lines(path, [{"t": t and "2024-01-01 %s:00" % t, "k": k} for t, k in batch])
        os.utime(path, (1700000000 + number, 1700000000 + number))


def stream(folder="in", names="t timestamp, k string"):
    return spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1).json(tmp + "/" + folder)


def marked():
    return stream().withWatermark("t", "5 minutes")


def other():
    return stream("other").withWatermark("t", "5 minutes").select(F.col("t").alias("u"), F.col("k").alias("l"))


window = F.window("t", "10 minutes")
static = spark.createDataFrame([("a", 1), ("b", 2)], "k string, m int")
near = F.expr("k = l AND t BETWEEN u - INTERVAL 5 MINUTES AND u + INTERVAL 5 MINUTES")
for label, df in (
    ("filter", marked().where("k = 'a'").groupBy(window).count()),
    ("filter of the time", marked().where("t > '2024-01-01 10:10:00'").groupBy(window).count()),
    ("filter above", marked().groupBy(window, "k").count().where("k = 'a'")),
    ("filter of a count", marked().groupBy(window, "k").count().where("count > 1 AND k <> 'b'")),
    ("filter of a window", marked().groupBy(window, "k").count().where("window.start > '2024-01-01 10:05:00'")),
    ("static inner", marked().join(static, "k").groupBy(window).count()),
    ("static left", marked().join(static, "k", "left").groupBy(window).count()),
    ("static semi", marked().join(static, "k", "left_semi").groupBy(window).count()),
    ("streams inner", marked().join(other(), near)),
    ("streams left", marked().join(other(), near, "left")),
    ("streams right", marked().join(other(), near, "right")),
    ("streams semi", marked().join(other(), near, "left_semi")),
):
    name = label.replace(" ", "_")
    query = df.writeStream.format("memory").queryName(name).outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination(90)
    print("#", label)
    for line in rows(spark.table(name)):
        print(line)
    for p in query.recentProgress:
        if "addBatch" in p.durationMs:
            s = p.stateOperators[0]
            print(p.batchId, p.numInputRows, p.eventTime["watermark"][11:16], s.numRowsTotal, s.numRowsUpdated, s.numRowsRemoved)
