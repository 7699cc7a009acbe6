# saveAsTable() into tables of files: appends by name, what does not fit, overwriting with other columns and formats; writers' refusals.
from pyspark.sql import functions as F

df = spark.createDataFrame([(1, "a"), (2, "b")], "id int, k string")
for name in ("parquet", "json"):
    table = "conf.of_" + name

    def append(rows, *partitions):
        rows.write.format(name).partitionBy(*partitions).mode("append").saveAsTable(table)

    df.write.format(name).saveAsTable(table)
    error(lambda: df.write.format(name).saveAsTable(table), name + " exists")
    df.select("k", "id").write.format(name).mode("append").saveAsTable(table)
    df.withColumnRenamed("k", "K").write.format(name).mode("append").saveAsTable(table)
    df.selectExpr("CAST(id + 10 AS BIGINT) AS id", "k").write.format(name).mode("append").saveAsTable(table)
    error(lambda: append(df.select("id")), "fewer columns")
    error(lambda: append(df.withColumn("z", F.lit(1))), "more columns")
    error(lambda: append(df.withColumnRenamed("k", "z")), "another name")
    error(lambda: append(df.selectExpr("'x' AS id", "k")), "another type")
    error(lambda: append(df, "k"), "another partitioning")
    error(lambda: df.write.format("csv").mode("append").saveAsTable(table), "another format")
    show(spark.table(table))
    df.write.format(name).mode("ignore").saveAsTable(table)
    df.select("k").write.format(name).mode("overwrite").saveAsTable(table)
    show(spark.table(table))
    df.write.format(name).partitionBy("id").mode("overwrite").saveAsTable(table)
    show(spark.table(table))
    append(df.selectExpr("k", "id + 1 AS id"), "id")
    error(lambda: append(df), "without its partitioning")
    show(spark.table(table))
df.write.format("csv").mode("overwrite").saveAsTable("conf.of_json")
show(spark.table("conf.of_json"))
error(lambda: df.write.partitionBy("k").insertInto("conf.of_json"), "insertInto with partitionBy")
error(lambda: df.write.bucketBy(2, "id").insertInto("conf.of_json"), "insertInto with bucketBy")
error(lambda: df.write.bucketBy(2, "id").parquet(tmp + "/b"), "save with bucketBy")
error(lambda: df.write.partitionBy("zz").parquet(tmp + "/p"), "unknown partition column")
error(lambda: df.write.partitionBy("k", "k").parquet(tmp + "/p"), "partition column twice")
for mode in ("error", "ignore", "append", "overwrite"):
    error(lambda: df.write.format("noop").mode(mode).save(), "noop " + mode)
error(lambda: df.write.format("binaryFile").save(tmp + "/bin"), "binaryFile")
