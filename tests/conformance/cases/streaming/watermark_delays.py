# What withWatermark takes as a delay, and what the watermark becomes.
from pyspark.sql import functions as F

write_lines(tmp + "/in/a.json", [{"k": "a", "t": "2024-03-31 10:00:00"}])
stream = spark.readStream.schema("k string, t timestamp").json(tmp + "/in")
number = 0


def shown(delay):
    global number
    number += 1
    try:
        counts = stream.withWatermark("t", delay).groupBy(F.window("t", "1 hour")).count()
        query = run_stream(counts.writeStream.format("memory").queryName("delay_%d" % number).trigger(availableNow=True))
        print(repr(delay), query.recentProgress[-1]["eventTime"].get("watermark"))
    except PySparkException as e:
        print(repr(delay), "ERROR", condition(e), e.getSqlState() or "-")


for delay in [
    "interval 1 minute",
    "1 minute 30 seconds",
    "00:01:00",
    "1 year",
    "2 months 3 days",
    "interval '1' minute",
    "INTERVAL '1 02:03:04' DAY TO SECOND",
    "1 minutes, 2 seconds",
    "1.5 seconds",
    "1.5 minutes",
    "1500 microseconds",
    "1 nanosecond",
    "1 minute -30 seconds",
    "30 seconds -1 minute",
    "1 month -1 day",
    "1 day -1 month",
    " ",
    "PT1H",
    "interval",
    "100000 years",
    "9223372036854775807 microseconds",
]:
    shown(delay)
batch = spark.sql("SELECT timestamp'2024-03-31 10:00:00' AS t, 1 AS id")
print(rows(batch.withWatermark("id", "1 hour")), rows(batch.withWatermark("nope", "1 hour")))
error(lambda: batch.withWatermark("t", "soon"), "batch, bad delay")
error(lambda: batch.withWatermark("t", "-1 hour"), "batch, negative delay")
for column in [
    "struct(t AS t, t AS u)",
    "struct(t AS start, t AS end)",
    "struct(t AS start, t AS End)",
    "struct(timestamp_ntz'2024-01-01' AS start, timestamp_ntz'2024-01-01' AS end)",
]:
    error(lambda: stream.selectExpr(column + " AS w").withWatermark("w", "1 hour").isStreaming, column)
    error(lambda: stream.selectExpr(column + " AS w").withWatermark("w", "1 hour").schema, column)
