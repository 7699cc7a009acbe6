# count(expr("*")), map_concat of empty maps, variants in show().
# oracle: spark
from pyspark.sql import functions as F

df = spark.createDataFrame([(1, None), (2, "b")], "a INT, b STRING")
show(df.select(F.count(F.expr("*")), F.count("*"), F.count("b")))
show(spark.range(1).select(F.map_concat(F.create_map(F.lit(1), F.lit("a")), F.create_map())))
show(spark.range(1).select(F.map_concat(F.create_map(F.lit(1), F.lit("a")), F.create_map(F.lit(2), F.lit(None)))))
show(spark.range(3, numPartitions=1).select(F.randstr(F.lit(6), F.lit(3)).alias("r")), sort=False)
show(spark.range(3, numPartitions=1).select(F.uuid(seed=123)), sort=False)
spark.sql("SELECT parse_json('\"hello\"') AS s, parse_json('{\"b\": 1, \"a\": [true, null]}') AS o").show(truncate=False)
show(spark.sql("SELECT timestamp'2016-03-11 09:00:07' AS ts, 2 AS q").select(F.timestamp_add("year", "q", "ts"), F.timestamp_diff("day", "ts", "ts")))
error(lambda: spark.sql("SELECT CAST(3.4e38F AS TIMESTAMP)").collect())
show(spark.sql("SELECT try_cast(3.4e38F AS TIMESTAMP) AS r"))
