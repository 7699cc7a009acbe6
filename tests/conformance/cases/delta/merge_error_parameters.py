# The parameters of errors that name the clause of MERGE, its columns and what UPDATE sets twice.
spark.sql("CREATE TABLE t (id INT, v STRING, n STRUCT<a: INT, b: STRING>) USING delta")
spark.sql("CREATE TEMPORARY VIEW s AS SELECT * FROM VALUES (1, 'x', 5), (2, 'z', 7) AS s(id, v, w)")
merge = "MERGE INTO t USING s ON %s WHEN %s"


def parameters(statement):
    print("# " + statement)
    try:
        spark.sql(statement).collect()
        print("NO ERROR")
    except PySparkException as e:
        print(condition(e), json.dumps(e.getMessageParameters(), sort_keys=True))


for on in ["t.nope = s.id", "t.id = s.nope", "nope = s.id"]:
    parameters(merge % (on, "MATCHED THEN DELETE"))
for when in ["MATCHED AND t.nope = 1 THEN DELETE", "MATCHED AND s.nope = 1 THEN UPDATE SET v = ''",
             "MATCHED THEN UPDATE SET nope = 1", "MATCHED THEN UPDATE SET t.nope = 1", "MATCHED THEN UPDATE SET w = 1",
             "MATCHED THEN UPDATE SET v = s.nope", "MATCHED THEN UPDATE SET v = nope + 1",
             "NOT MATCHED THEN INSERT (id, nope) VALUES (1, 2)", "NOT MATCHED THEN INSERT (id) VALUES (t.id)",
             "NOT MATCHED AND n.a = 1 THEN INSERT (id) VALUES (1)", "NOT MATCHED THEN INSERT *",
             "MATCHED THEN UPDATE SET *", "NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v",
             "NOT MATCHED BY SOURCE AND w = 1 THEN DELETE", "MATCHED THEN UPDATE SET v = DEFAULT",
             "MATCHED THEN UPDATE SET n.c = 1", "MATCHED THEN UPDATE SET v.c = 1",
             "MATCHED THEN UPDATE SET n.a = 1, n.a = 2", "MATCHED THEN UPDATE SET n.a = 1, n = NULL",
             "NOT MATCHED THEN INSERT (n.a) VALUES (1)", "MATCHED THEN UPDATE SET v = max(s.v)",
             "MATCHED AND v = 'x' THEN DELETE", "MATCHED AND 'a' THEN DELETE"]:
    parameters(merge % ("t.id = s.id", when))
parameters("MERGE INTO t AS x USING s ON t.id = s.id WHEN MATCHED THEN DELETE")
parameters("MERGE INTO t AS x (a, b) USING s ON x.a = s.id WHEN MATCHED THEN DELETE")
for statement in ["UPDATE t SET n.zz = 1", "UPDATE t SET v = 1, v = 2", "UPDATE t SET v = max(v)",
                  "DELETE FROM t WHERE max(id) > 2", "DELETE FROM t WHERE rand() > 2",
                  "DELETE FROM t WHERE NULL", "UPDATE t SET v = '' WHERE 'a'"]:
    parameters(statement)
