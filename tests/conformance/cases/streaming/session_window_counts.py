# numRowsUpdated of session windows: every session of a key that has new rows.
from pyspark.sql import functions as F

SENT = [[("10:00", "a"), ("10:02", "a"), ("10:00", "b")], [("10:06", "a"), ("10:20", "b")],
        [("10:01", "a"), ("10:03", "b"), ("10:40", "c")], [("10:35", "c"), ("10:59", "d")]]
for number, batch in enumerate(SENT):
    path = "%s/in/%d.json" % (tmp, number)
    write_lines(path, [{"k": k, "t": "2024-01-01 %s:00" % t} for t, k in batch])
    os.utime(path, (1700000000 + number, 1700000000 + number))
gap = F.when(F.col("k") == "a", "10 minutes").when(F.col("k") == "b", "1 minute").otherwise("20 seconds")
for label, mode, window in (("append", "append", "5 minutes"), ("complete", "complete", "5 minutes"), ("gap", "append", gap)):
    stream = spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1).json(tmp + "/in")
    counts = stream.withWatermark("t", "10 minutes").groupBy(F.session_window("t", window), "k").count()
    shown = counts.selectExpr("date_format(session_window.start, 'HH:mm:ss')", "date_format(session_window.end, 'HH:mm:ss')", "k", "count")
    query = shown.writeStream.format("memory").queryName(label).outputMode(mode).trigger(availableNow=True).start()
    query.awaitTermination(90)
    print("#", label)
    for line in rows(spark.table(label)):
        print(line)
    for p in query.recentProgress:
        s = p.stateOperators[0]
        print(p.batchId, p.numInputRows, s.numRowsTotal, s.numRowsUpdated, s.numRowsRemoved)
