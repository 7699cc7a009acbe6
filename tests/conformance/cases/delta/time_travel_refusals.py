# Time travel said twice, and schemas given to a batch read: the conditions of the path and of the table's name differ.
path = tmp + "/t"
spark.range(3).write.format("delta").save(path)
spark.sql("CREATE TABLE t USING delta LOCATION '%s'" % path)
read = lambda **options: spark.read.format("delta").options(**options)
error(lambda: read(versionAsOf=0, timestampAsOf="2024-01-01").load(path), "both, path")
error(lambda: spark.read.option("versionAsOf", 0).option("timestampAsOf", "2024-01-01").table("t"), "both, table")
error(lambda: read(versionAsOf=0).load(path + "@v0"), "both, path and option")
error(lambda: spark.sql("SELECT * FROM t VERSION AS OF 0 TIMESTAMP AS OF '2024-01-01'"), "both, SQL")
error(lambda: spark.read.schema("id int").format("delta").load(path), "another schema")
error(lambda: spark.read.schema("id long").format("delta").load(path), "the same schema")
error(lambda: spark.range(1).write.format("delta").bucketBy(2, "id").saveAsTable("b"), "bucketBy")
error(lambda: spark.range(1).write.format("delta").mode("overwrite").option("replaceWhere", "id > 5").option(
    "partitionOverwriteMode", "dynamic").save(path), "replaceWhere and dynamic, no partitions")
