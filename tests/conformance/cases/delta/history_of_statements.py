# What DESCRIBE HISTORY says of statements that change no rows, of partitions that are replaced and of VACUUM.
import re

spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # only so that VACUUM is quick
spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")


def history(table):
    for r in sorted(spark.sql("DESCRIBE HISTORY " + table).collect(), key=lambda r: r.version):
        params = {k: v for k, v in r.operationParameters.items() if k not in ("properties", "newProtocol")}
        metrics = {k: v for k, v in (r.operationMetrics or {}).items() if k.startswith("num") and "Bytes" not in k}
        print(r.version, r.operation, r.isolationLevel, r.isBlindAppend, rel(re.sub(r"#\d+L?", "", json.dumps(params, sort_keys=True))),
              json.dumps(metrics, sort_keys=True))


spark.sql("CREATE TABLE p (id BIGINT, v STRING, k INT) USING delta PARTITIONED BY (v, k)")
spark.range(4).coalesce(1).selectExpr("id", "'a' AS v", "1 AS k").write.insertInto("p")
spark.sql("INSERT OVERWRITE p PARTITION (v = 'a', k = 1) SELECT * FROM VALUES (7)")
spark.sql("INSERT OVERWRITE p PARTITION (v = 'a', k) SELECT * FROM VALUES (8, 2)")
spark.sql("DELETE FROM p WHERE k = 2")
spark.sql("VACUUM p RETAIN 0 HOURS")
spark.sql("VACUUM p LITE")
history("p")
spark.sql("CREATE TABLE c (id INT, x STRUCT<a: INT>) USING delta CLUSTER BY (id)")
spark.sql("INSERT INTO c VALUES (1, NULL)")
spark.sql("OPTIMIZE c")
spark.sql("ALTER TABLE c ALTER COLUMN x.a COMMENT 'of a field'")
spark.sql("ALTER TABLE c ADD CONSTRAINT one CHECK (id > 0)")
spark.sql("ALTER TABLE c DROP CONSTRAINT one")
spark.sql("ALTER TABLE c DROP CONSTRAINT IF EXISTS one")
spark.sql("ALTER TABLE c SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
spark.sql("ALTER TABLE c ADD COLUMN s SMALLINT")
spark.sql("ALTER TABLE c ALTER COLUMN s TYPE INT")
spark.sql("ALTER TABLE c SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
spark.sql("CREATE TABLE cc SHALLOW CLONE c TBLPROPERTIES ('mine' = '1')")
history("c")
history("cc")
spark.range(4).coalesce(1).write.parquet(tmp + "/pq")
spark.sql("CONVERT TO DELTA parquet.`%s/pq`" % tmp)
history("delta.`%s/pq`" % tmp)
