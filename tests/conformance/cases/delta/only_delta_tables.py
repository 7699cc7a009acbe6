# Commands of Delta tables on tables of other formats, views, names and paths where nothing is.
spark.sql("CREATE TABLE pq (a INT) USING parquet")
spark.sql("CREATE TABLE t (a INT) USING delta")
spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM t")
spark.sql("CREATE VIEW pv AS SELECT * FROM t")
names = ["pq", "tv", "pv", "nosuch", "delta.`%s/none`" % tmp, "parquet.`%s`" % tmp]
for statement in ["OPTIMIZE %s", "VACUUM %s", "REORG TABLE %s APPLY (PURGE)", "DESCRIBE HISTORY %s", "GENERATE symlink_format_manifest FOR TABLE %s"]:
    for name in names:
        error(lambda: spark.sql(statement % name), rel(statement % name))
for statement in ["ALTER TABLE %s ADD COLUMN z INT", "ALTER TABLE %s ADD CONSTRAINT c CHECK (a > 0)", "TRUNCATE TABLE %s"]:
    for name in names[1:]:
        error(lambda: spark.sql(statement % name), rel(statement % name))
for statement in ["OPTIMIZE '%s/none'", "VACUUM '%s/none'"]:
    error(lambda: spark.sql(statement % tmp), rel(statement % tmp))
spark.sql("DROP VIEW pv")
