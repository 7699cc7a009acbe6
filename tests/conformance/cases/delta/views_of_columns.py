# DELETE, UPDATE and MERGE through temporary views that leave out, move or rename columns of a Delta table.
def setup():
    spark.sql("CREATE OR REPLACE TABLE t (id INT, v STRING, w INT) USING delta")
    spark.sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)")


def run(view, statements):
    for statement in statements:
        setup()
        spark.sql("CREATE OR REPLACE TEMP VIEW vw AS " + view)
        try:
            print(statement, "->", rows(spark.sql(statement)))
        except PySparkException as e:
            print(statement, "->", condition(e), e.getSqlState())
        print("   ", rows(spark.table("t")))


print("# left out")
run("SELECT id, v FROM t", ["DELETE FROM vw WHERE id = 1", "DELETE FROM vw WHERE w = 10", "MERGE INTO vw USING (SELECT 2 AS k) s ON vw.id = s.k WHEN MATCHED THEN DELETE"])
print("# moved")
run("SELECT v, id, w FROM t", ["DELETE FROM vw WHERE id = 1", "UPDATE vw SET v = 'z' WHERE id = 2"])
print("# renamed")
run("SELECT id AS k, v, w FROM t", ["DELETE FROM vw WHERE k = 1", "UPDATE vw SET v = 'z' WHERE k = 2"])
print("# one more")
run("SELECT *, id + 1 AS z FROM t", ["DELETE FROM vw WHERE id = 1", "UPDATE vw SET v = 'z' WHERE id = 2", "MERGE INTO vw USING (SELECT 2 AS k) s ON vw.id = s.k WHEN MATCHED THEN DELETE"])
