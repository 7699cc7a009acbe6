# What DESCRIBE HISTORY says of writes with options, of constraints and of properties.
def history(table, since=0):
    for r in sorted(spark.sql("DESCRIBE HISTORY " + table).collect(), key=lambda r: r.version):
        metrics = {k: v for k, v in (r.operationMetrics or {}).items() if k in (
            "numOutputRows", "numDeletedRows", "numCopiedRows", "numAddedChangeFiles", "numRemovedFiles", "numFiles")}
        params = {k: v for k, v in r.operationParameters.items() if k != "predicate"}
        if r.version >= since:
            print(r.version, r.operation, json.dumps(params, sort_keys=True), json.dumps(metrics, sort_keys=True))


rows_of = lambda n, *columns: spark.range(n).selectExpr("id", *columns).coalesce(1)
path = tmp + "/d"
rows_of(10, "id % 2 AS p").write.format("delta").partitionBy("p").save(path)
write = lambda df, mode, **options: df.write.format("delta").mode(mode).options(**options).save(path)
write(rows_of(10, "1L AS p"), "overwrite", replaceWhere="p = 1")
write(rows_of(10, "0L AS p"), "overwrite", partitionOverwriteMode="dynamic")
write(rows_of(10, "0L AS p", "2 AS r"), "append", mergeSchema="true", userMetadata="um")
write(rows_of(10, "0L AS p", "1 AS q"), "overwrite", overwriteSchema="true")
write(rows_of(3, "100L AS p", "1 AS q"), "overwrite", replaceWhere="p > 99")
write(rows_of(3, "100L AS p", "1 AS q"), "append", overwriteSchema="true")
history("delta.`%s`" % path)
print(spark.sql("DESCRIBE DETAIL delta.`%s`" % path).select("partitionColumns").collect())
rows_of(3).write.saveAsTable("w", format="delta")
rows_of(3).write.mode("overwrite").saveAsTable("w", format="delta")
rows_of(3).write.mode("overwrite").option("overwriteSchema", "true").saveAsTable("w", format="delta")
spark.sql("ALTER TABLE w ADD COLUMNS (m STRUCT<a: INT>, l ARRAY<INT>)")
spark.sql("ALTER TABLE w SET TBLPROPERTIES ('mine' = '2')")
spark.sql("ALTER TABLE w UNSET TBLPROPERTIES ('mine')")
spark.sql("ALTER TABLE w ADD CONSTRAINT c CHECK (id > -1)")
spark.sql("ALTER TABLE w DROP CONSTRAINT c")
spark.sql("TRUNCATE TABLE w")
history("w")
