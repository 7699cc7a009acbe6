# The parameters of what commands of Delta tables say of other tables, views and empty places.
spark.sql("CREATE TABLE pq (a INT) USING parquet")
spark.sql("CREATE TEMPORARY VIEW tv AS SELECT 1 AS a")
for statement in ["VACUUM pq", "DESCRIBE HISTORY pq", "OPTIMIZE pq", "VACUUM tv", "DESCRIBE HISTORY tv", "DESCRIBE DETAIL tv",
                  "DESCRIBE HISTORY delta.`%s/none`", "VACUUM delta.`%s/none`", "VACUUM '%s/none'",
                  "OPTIMIZE delta.`%s/none`", "OPTIMIZE '%s/none'"]:
    text = statement.replace("%s", tmp)
    try:
        spark.sql(text).collect()
        print(statement, "NO ERROR")
    except PySparkException as e:
        print(statement, condition(e), rel(json.dumps(e.getMessageParameters(), sort_keys=True)))
