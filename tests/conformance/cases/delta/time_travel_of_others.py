# Time travel of what has no versions, times that are none, and old versions named where the newest one is needed.
path = tmp + "/t"
keep = {"delta.deletedFileRetentionDuration": "interval 5000 weeks", "delta.logRetentionDuration": "interval 5000 weeks"}
spark.range(3).coalesce(1).write.format("delta").options(**keep).save(path)
spark.range(3).coalesce(1).write.format("delta").mode("append").save(path)
for i in range(2):
    when = datetime.datetime(2024, 1, 1 + i, 12, tzinfo=datetime.timezone.utc).timestamp()
    os.utime(path + "/_delta_log/%020d.json" % i, (when, when))
spark.sql("CREATE TABLE t USING delta LOCATION '%s'" % path)
spark.sql("ALTER TABLE t SET TBLPROPERTIES ('mine' = '1')")
spark.sql("CREATE VIEW v AS SELECT * FROM t")
spark.sql("CREATE TEMPORARY VIEW tv AS SELECT * FROM t")
spark.sql("CREATE TABLE pq (id INT) USING parquet")


def parameters(action, label):
    print("# " + label)
    try:
        rows = action().collect()
        print(rows)
    except PySparkException as e:
        texts = {k: v for k, v in e.getMessageParameters().items() if k not in ("tableName", "maximumTimestamp", "latestTimestamp", "plan")}
        print(condition(e), rel(json.dumps(texts, sort_keys=True)))


for name in ["v", "tv", "pq"]:
    parameters(lambda: spark.sql("SELECT count(*) FROM %s VERSION AS OF 1" % name), name + " in SQL")
    parameters(lambda: spark.sql("SELECT count(*) FROM %s TIMESTAMP AS OF '2024-01-01'" % name), name + " in SQL")
    parameters(lambda: spark.read.option("versionAsOf", "1").table(name), name + " with an option")
for statement in ["WITH c AS (SELECT * FROM t) SELECT count(*) FROM c VERSION AS OF 1",
                  "SELECT count(*) FROM t VERSION AS OF 50", "SELECT count(*) FROM t TIMESTAMP AS OF 'abc'",
                  "SELECT count(*) FROM t TIMESTAMP AS OF NULL", "SELECT count(*) FROM t TIMESTAMP AS OF array(1)",
                  "SELECT count(*) FROM t TIMESTAMP AS OF 5", "SELECT count(*) FROM t TIMESTAMP AS OF 1704200000L",
                  "SELECT count(*) FROM t TIMESTAMP AS OF (SELECT timestamp'2024-01-01 13:00:00')",
                  "SELECT count(*) FROM t TIMESTAMP AS OF '2020-01-01'",
                  "SELECT count(*) FROM t TIMESTAMP AS OF '2099-01-01'",
                  "SELECT count(*) FROM t TIMESTAMP AS OF rand()",
                  "RESTORE t TO VERSION AS OF 50", "RESTORE t TO TIMESTAMP AS OF '2020-01-01'",
                  "RESTORE t TO TIMESTAMP AS OF '2099-01-01'", "RESTORE v TO VERSION AS OF 0",
                  "RESTORE tv TO VERSION AS OF 0", "DESCRIBE HISTORY v", "DESCRIBE HISTORY t LIMIT 0"]:
    parameters(lambda: spark.sql(statement), statement)
for statement in ["INSERT INTO %s VALUES (1)", "DELETE FROM %s", "UPDATE %s SET id = 1",
                  "MERGE INTO %s x USING t s ON x.id = s.id WHEN MATCHED THEN DELETE"]:
    parameters(lambda: spark.sql(statement % ("delta.`%s@v1`" % path)), statement)
print([r.version for r in spark.sql("DESCRIBE HISTORY delta.`%s@v1`" % path).collect()])
print(spark.sql("RESTORE t TO VERSION AS OF 2").columns, spark.sql("RESTORE t TO VERSION AS OF 0").columns)
spark.sql("RESTORE t TO VERSION AS OF 0")
print(spark.table("t").count(), [r.operation for r in spark.sql("DESCRIBE HISTORY t").collect()])
for name in os.listdir(path):
    if name.endswith(".parquet") and name not in [a["add"]["path"] for a in delta_log(path, 0) if "add" in a]:
        os.remove(path + "/" + name)
error(lambda: spark.sql("RESTORE t TO VERSION AS OF 1"), "a data file is gone")
spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
print(spark.sql("RESTORE t TO VERSION AS OF 1").select("num_of_files_after_restore", "num_restored_files").collect())
print(spark.table("t").count())
spark.conf.unset("spark.sql.files.ignoreMissingFiles")
spark.sql("DROP VIEW v")
