# What the settings of streaming change: the policy of several watermarks, batches without data, chained operators, the
# list of progress, where checkpoints lie, schemas that are inferred.
from pyspark.sql import functions as F

PREFIX = "spark.sql.streaming."


def write(folder, number, lines):
    path = "%s/%s/%d.json" % (tmp, folder, number)
    write_lines(path, lines)
    os.utime(path, (1700000000 + number, 1700000000 + number))


def source(folder):
    return spark.readStream.schema("k string, t timestamp").option("maxFilesPerTrigger", 1).json(tmp + "/" + folder)


def watermarks(query):
    return [(p.batchId, p.numInputRows, p.eventTime.get("watermark")) for p in query.recentProgress]


write("left", 0, [{"k": "a", "t": "2024-01-01 10:00:00"}])
write("left", 1, [{"k": "a", "t": "2024-01-01 12:00:00"}])
write("right", 0, [{"k": "b", "t": "2024-01-01 08:00:00"}])
write("right", 1, [{"k": "b", "t": "2024-01-01 09:00:00"}])
for policy in ("min", "max"):
    spark.conf.set(PREFIX + "multipleWatermarkPolicy", policy)
    both = source("left").withWatermark("t", "10 minutes").union(source("right").withWatermark("t", "20 minutes"))
    counts = both.groupBy(F.window("t", "1 hour"), "k").count()
    query = run_stream(counts.writeStream.format("memory").queryName("of_" + policy).trigger(availableNow=True))
    print("# policy", policy)
    for entry in watermarks(query):
        print(*entry)
    for line in rows(spark.table("of_" + policy)):
        print(line)
spark.conf.unset(PREFIX + "multipleWatermarkPolicy")

for value in ("true", "false"):
    spark.conf.set(PREFIX + "noDataMicroBatches.enabled", value)
    counts = source("left").withWatermark("t", "10 minutes").groupBy(F.window("t", "1 hour")).count()
    query = run_stream(counts.writeStream.format("memory").queryName("no_data_" + value).trigger(availableNow=True))
    print("# batches without data", value)
    for entry in watermarks(query):
        print(*entry)
    for line in rows(spark.table("no_data_" + value)):
        print(line)
spark.conf.unset(PREFIX + "noDataMicroBatches.enabled")


for number, hour in enumerate((10, 12, 16, 19)):
    write("chain", number, [{"k": "a", "t": "2024-01-01 %d:00:00" % hour}])


def chained(mode, name):
    first = source("chain").withWatermark("t", "10 minutes").groupBy(F.window("t", "1 hour"), "k").count()
    second = first.groupBy(F.window(F.window_time("window"), "2 hours")).agg(F.sum("count").alias("n"))
    return run_stream(second.writeStream.format("memory").outputMode(mode).queryName(name).trigger(availableNow=True))


error(lambda: chained("append", "chained_1"), "chained")
error(lambda: chained("update", "chained_2"), "chained, update")
spark.conf.set(PREFIX + "statefulOperator.allowMultiple", "false")
error(lambda: chained("append", "chained_3"), "chained, allowMultiple = false")
spark.conf.set(PREFIX + "statefulOperator.checkCorrectness.enabled", "false")
error(lambda: chained("append", "chained_4"), "chained, allowMultiple = false and unchecked")
spark.conf.unset(PREFIX + "statefulOperator.allowMultiple")
error(lambda: chained("update", "chained_5"), "chained, update, unchecked")
for number in (1, 3, 4, 5):
    print(number, rows(spark.table("chained_%d" % number)))
spark.conf.unset(PREFIX + "statefulOperator.checkCorrectness.enabled")

write("many", 0, [{"k": "a"}])
for number in range(1, 6):
    write("many", number, [{"k": "a"}])
spark.conf.set(PREFIX + "numRecentProgressUpdates", "3")
spark.conf.set(PREFIX + "minBatchesToRetain", "2")
spark.conf.set(PREFIX + "checkpointLocation", tmp + "/checks")
query = run_stream(source("many").writeStream.format("noop").queryName("named").trigger(availableNow=True))
print("# progress", [p.batchId for p in query.recentProgress])
print("# checkpoint", sorted(os.listdir(tmp + "/checks")), sorted(n for n in os.listdir(tmp + "/checks/named") if n[0] != "."))
run_stream(source("many").writeStream.format("noop").option("checkpointLocation", tmp + "/own").trigger(availableNow=True))
print("# checkpoint", sorted(os.listdir(tmp + "/checks")))
for name in ("numRecentProgressUpdates", "minBatchesToRetain", "checkpointLocation"):
    spark.conf.unset(PREFIX + name)

error(lambda: spark.readStream.json(tmp + "/many").isStreaming, "no schema")
error(lambda: spark.readStream.json(tmp + "/many").schema, "no schema, asked for it")
spark.conf.set(PREFIX + "schemaInference", "true")
print(spark.readStream.json(tmp + "/left").schema.simpleString())
spark.conf.unset(PREFIX + "schemaInference")
