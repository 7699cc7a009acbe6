# WATERMARK ... DELAY OF in SQL: which intervals, which columns, which places.
write_lines(tmp + "/in/a.json", [{"k": "a", "t": "2024-03-31 10:00:00"}])
spark.readStream.schema("k string, t timestamp").json(tmp + "/in").createOrReplaceTempView("s")
number = 0


def shown(text):
    global number
    number += 1
    try:
        query = run_stream(spark.sql(text).writeStream.format("memory").queryName("clause_%d" % number).trigger(availableNow=True))
        print(text, "|", query.recentProgress[-1]["eventTime"].get("watermark"))
    except PySparkException as e:
        print(text, "| ERROR", condition(e), e.getSqlState() or "-")


for delay in [
    "INTERVAL '1' MINUTE",
    "INTERVAL '1 minute 30 seconds'",
    "INTERVAL 1 minute 30 seconds",
    "INTERVAL '00:01:00' HOUR TO SECOND",
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL 1 month 1 day",
    "INTERVAL 'P1D'",
    "INTERVAL '1'",
    "'1 minute'",
    "INTERVAL -1 minute",
    "- INTERVAL 1 minute",
    "INTERVAL 1 minute + INTERVAL 1 minute",
    "INTERVAL 1.5 seconds",
    "INTERVAL 10 year -1 month",
    "INTERVAL -'1-2' YEAR TO MONTH",
    "INTERVAL '1 day' day",
    "INTERVAL 1 foo",
]:
    shown("SELECT window(t, '1 hour') w, count(*) c FROM s WATERMARK t DELAY OF %s GROUP BY 1" % delay)
for text in [
    "SELECT x.k FROM s WATERMARK t DELAY OF INTERVAL 1 minute AS x",
    "SELECT * FROM s AS x WATERMARK t DELAY OF INTERVAL 1 minute",
    "SELECT * FROM (SELECT * FROM s) WATERMARK t DELAY OF INTERVAL 1 minute AS q",
    "SELECT * FROM s WATERMARK t + interval 1 hour AS u DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK t + interval 1 hour DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK nope DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK k DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK * DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK t DELAY INTERVAL 1 minute",
    "SELECT * FROM range(3) WATERMARK id DELAY OF INTERVAL 1 minute",
    "SELECT * FROM s WATERMARK struct(t, t) AS w DELAY OF INTERVAL 1 minute",
    "SELECT a.k FROM s WATERMARK t DELAY OF INTERVAL 1 minute AS a JOIN s WATERMARK t DELAY OF INTERVAL 2 minutes AS b ON a.t = b.t",
]:
    shown(text)
error(lambda: spark.sql("SELECT * FROM s WATERMARK t DELAY OF INTERVAL -1 minute"), "negative", message=True)
show(spark.sql("SELECT * FROM range(3) WATERMARK id DELAY OF INTERVAL 1 minute"))
