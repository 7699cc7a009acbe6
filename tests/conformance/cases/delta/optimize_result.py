# What OPTIMIZE returns: plain, Z-ordered, with deletion vectors, of clustered tables before and after their columns change.
def opt(label, statement):
    m = spark.sql(statement).collect()[0].metrics
    d = m.asDict(True)
    print("#", label)
    print([d[k] for k in ["numFilesAdded", "numFilesRemoved", "partitionsOptimized", "numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped", "preserveInsertionOrder"]])
    for k in ["zOrderStats", "clusteringStats"]:
        print(k, d[k] and {n: v if not isinstance(v, dict) else [x for y, x in v.items() if "ize" not in y] for n, v in d[k].items()})
    print(d["deletionVectorStats"], d["autoCompactParallelismStats"], d["numTableColumns"], d["numTableColumnsWithStats"])


spark.sql("CREATE TABLE a (id INT, v INT) USING delta")
for i in (1, 2):
    spark.sql("INSERT INTO a VALUES (%d, 2)" % i)
print(spark.sql("OPTIMIZE a").schema.simpleString())
opt("nothing to do", "OPTIMIZE a")
opt("Z-ordered", "OPTIMIZE a ZORDER BY (id)")
spark.sql("CREATE TABLE d (id INT, v INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
spark.sql("INSERT INTO d SELECT /*+ COALESCE(1) */ id, 1 FROM range(100)")
spark.sql("DELETE FROM d WHERE id < 50")
opt("one file with a deletion vector stays", "OPTIMIZE d")
spark.sql("INSERT INTO d VALUES (1, 2)")
opt("two files, one with a deletion vector", "OPTIMIZE d")
spark.sql("DELETE FROM d WHERE id = 60")
spark.sql("INSERT INTO d VALUES (1, 2)")
opt("purge", "REORG TABLE d APPLY (PURGE)")
spark.sql("CREATE TABLE c (id INT, v INT) USING delta CLUSTER BY (id)")
for i in (1, 2):
    spark.sql("INSERT INTO c VALUES (%d, 2)" % i)
opt("clustered", "OPTIMIZE c")
spark.sql("INSERT INTO c VALUES (1, 2)")
opt("one more file", "OPTIMIZE c")
opt("all clustered", "OPTIMIZE c")
opt("all clustered, FULL", "OPTIMIZE c FULL")
spark.sql("ALTER TABLE c CLUSTER BY (v)")
opt("other columns", "OPTIMIZE c")
opt("other columns, FULL", "OPTIMIZE c FULL")
