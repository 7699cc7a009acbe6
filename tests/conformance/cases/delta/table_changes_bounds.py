# The arguments of table_changes: which bounds, of which types.
spark.sql("CREATE TABLE with_changes (id BIGINT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
for i in range(3):
    spark.sql("INSERT INTO with_changes VALUES (%d)" % i)
spark.sql("CREATE TABLE without_changes (id BIGINT) USING delta")
spark.sql("INSERT INTO without_changes VALUES (1)")
for arguments in [
    "'with_changes', 0",
    "'with_changes', 1, 2",
    "'with_changes', 2, 1",
    "'with_changes', 3, 9",
    "'with_changes', 4",
    "'with_changes', -1",
    "'with_changes', 0, -1",
    "'with_changes', 1.5",
    "'with_changes', '1'",
    "'with_changes', '2000-01-01'",
    "'with_changes', '2999-01-01'",
    "'with_changes', '2000-01-01', '2000-01-02'",
    "'with_changes', timestamp'2000-01-01'",
    "'with_changes', date'2000-01-01'",
    "'with_changes', 0, '2999-01-01'",
    "'with_changes', '2000-01-01', 1",
    "'with_changes'",
    "'with_changes', NULL",
    "'with_changes', 0, NULL",
    "'with_changes', 0, 1, 2",
    "'nope', 0",
    "'without_changes', 0",
    "'with_changes', 0L",
    "'with_changes', 1 + 0",
    "'with_changes', 0Y",
    "'with_changes', 0, 2S",
    "'with_changes', true",
    "with_changes, 0",
    "concat('with_', 'changes'), 0",
    "NULL, 0",
    "1, 0",
    "'with_changes', 99999999999",
]:
    query = "SELECT count(*), min(_commit_version), max(_commit_version) FROM table_changes(%s)" % arguments
    try:
        print(arguments, "|", "; ".join(rows(spark.sql(query))))
    except PySparkException as e:
        print(arguments, "| ERROR", condition(e), e.getSqlState() or "-")
read = spark.read.option("readChangeFeed", "true")
error(lambda: read.option("startingVersion", -1).table("with_changes").count(), "the option, -1")
