# Columns that hold VARIANT cannot be compared: set operations, DISTINCT and dropDuplicates refuse them, repartition too.
spark.sql("CREATE TABLE v (k INT, v VARIANT, s STRUCT<v: VARIANT>) USING delta")
spark.sql("INSERT INTO v SELECT 1, parse_json('1'), named_struct('v', parse_json('2'))")
for query in ("SELECT DISTINCT v FROM v", "SELECT DISTINCT s FROM v", "SELECT v FROM v UNION SELECT v FROM v",
              "SELECT v FROM v INTERSECT SELECT v FROM v", "SELECT v FROM v EXCEPT ALL SELECT v FROM v"):
    error(lambda: spark.sql(query), query)
table = spark.table("v")
error(lambda: table.distinct(), "distinct")
error(lambda: table.dropDuplicates(["k", "v"]), "dropDuplicates of the column")
print(table.dropDuplicates(["k"]).count())
error(lambda: table.repartition(2, "v"), "repartition")
print(spark.sql("SELECT k FROM v UNION ALL SELECT 2").count())
