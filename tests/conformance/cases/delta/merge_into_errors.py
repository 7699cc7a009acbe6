# mergeInto of DataFrames names the clause and its columns in errors as the statement does; clauses of VACUUM said twice.
from pyspark.sql.functions import expr, lit

spark.sql("CREATE TABLE t (id INT, v STRING, n STRUCT<a: INT>) USING delta")
spark.sql("INSERT INTO t VALUES (1, 'a', NULL)")
rows = spark.sql("SELECT 1 AS id, 'x' AS v, 5 AS w").alias("s")


def refused(action):
    try:
        action()
        print("NO ERROR")
    except PySparkException as e:
        print(type(e).__name__, condition(e), json.dumps(e.getMessageParameters(), sort_keys=True))


def merge(on, clauses):
    refused(lambda: clauses(rows.mergeInto("t", on)).merge())


same = expr("t.id = s.id")
merge(expr("t.nope = s.id"), lambda m: m.whenMatched().delete())
merge(same, lambda m: m.whenMatched(expr("t.nope = 1")).delete())
merge(same, lambda m: m.whenMatched().update({"nope": lit(1)}))
merge(same, lambda m: m.whenMatched().update({"v": expr("s.nope")}))
merge(same, lambda m: m.whenNotMatched().insert({"id": expr("t.id")}))
merge(same, lambda m: m.whenNotMatched().insertAll())
merge(same, lambda m: m.whenNotMatchedBySource().update({"v": expr("s.v")}))
merge(lit(None), lambda m: m.whenMatched().delete())
merge(same, lambda m: m.whenMatched().update({"n.b": lit(1)}))
for clauses in ["FULL LITE", "LITE LITE", "DRY RUN DRY RUN", "RETAIN 200 HOURS RETAIN 200 HOURS", "RETAIN 0 HOURS"]:
    refused(lambda: spark.sql("VACUUM t " + clauses))
