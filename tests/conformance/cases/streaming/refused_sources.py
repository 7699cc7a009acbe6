# Streaming sources that are refused: no path, an absent folder, formats that only write or only read batches, bad options.
read = lambda name, **options: spark.readStream.format(name).options(**options)
for label, make in (
    ("no path", lambda: read("json").schema("a int").load()),
    ("absent folder, no schema", lambda: read("json").load(tmp + "/absent")),
    ("absent folder", lambda: read("json").schema("a int").load(tmp + "/absent")),
    ("absent folder of text", lambda: read("text").load(tmp + "/absent")),
    ("jdbc", lambda: read("jdbc").load()),
    ("console", lambda: read("console").load()),
    ("noop", lambda: read("noop").load()),
    ("memory", lambda: read("memory").load()),
    ("rate with a schema", lambda: read("rate").schema("a int").load()),
    ("no rows per second", lambda: read("rate", rowsPerSecond=0).load()),
    ("no partitions", lambda: read("rate", numPartitions=0).load()),
    ("negative ramp", lambda: read("rate", rampUpTime=-1).load()),
    ("no rows per batch", lambda: read("rate-micro-batch").load()),
    ("negative advance", lambda: read("rate-micro-batch", rowsPerBatch=1, advanceMillisPerBatch=-1).load()),
):
    print("#", label)
    try:
        make().schema
        print("NO ERROR")
    except PySparkException as e:
        print("ERROR", condition(e), rel(str(e).split("\n")[0].split("SparkClassNotFoundException) ")[-1]))
stream = spark.readStream.format("rate").load()
for label, action in (
    ("pivot", lambda: stream.groupBy("timestamp").pivot("value").count()),
    ("crosstab", lambda: stream.crosstab("timestamp", "value")),
    ("freqItems", lambda: stream.freqItems(["value"]).collect()),
    ("mode", lambda: stream.writeStream.outputMode("sometimes").format("noop").start()),
):
    try:
        action().schema
        print("NO ERROR", label)
    except PySparkException as e:
        print("ERROR", label, type(e).__name__, condition(e), str(e).split("\n")[0])
