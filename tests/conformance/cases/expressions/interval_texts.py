# Texts that should be intervals: casts, literals, the widths of windows and the gaps of sessions.
from pyspark.sql import functions as F

df = spark.sql("SELECT timestamp'2024-03-31 10:00:00' + make_dt_interval(0, 0, 0, id) AS t, 1 AS id FROM range(1)")


def shown(label, made):
    try:
        print(label, "; ".join(rows(made())))
    except PySparkException as e:
        print(label, "ERROR", condition(e), e.getSqlState() or "-")


for text in [
    "1 hour 30 minutes",
    "interval 1 hour",
    "interval '1' hour",
    "interval '0 01:00:00' day to second",
    "interval '1:30' hour to minute",
    "interval '1 hour'",
    "'1' hour",
    "'1 hour'",
    "1.5 hours",
    "1.5 seconds",
    "9223372036854775807 microseconds",
    "9223372036854775808 microseconds",
    "soon",
    "",
    "-1 hour",
]:
    shown(repr(text) + " cast", lambda: spark.sql('SELECT CAST(CAST("%s" AS INTERVAL) AS STRING), TRY_CAST("%s" AS INTERVAL) IS NULL' % (text, text)))
    if not text.startswith("922"):
        shown(repr(text) + " window", lambda: df.select(F.window("t", text).alias("w")))
    shown(repr(text) + " session", lambda: df.groupBy(F.session_window("t", text).alias("w")).count() if not text.startswith("922") else df)
for literal in [
    "'1 day' day",
    "'x' day",
    "'1.5' day",
    "'1.5' second",
    "'1.1234567891' second",
    "'1 2' day",
    "'' day",
    "'-' day",
    "'x' month",
    "'9223372036854775807' microsecond",
    "'99999999999999999999' second",
    "'1 day' day '2' hour",
    "'x' day to second",
    "'x' year to month",
    "'1' day to year",
    "'1' second to day",
]:
    shown("INTERVAL " + literal, lambda: spark.sql("SELECT CAST(INTERVAL %s AS STRING)" % literal))
