# A stateless query restarted with an aggregation has no state to load; the texts of changed state name what differs.
def start(df, folder, mode="update"):
    query = (
        df.writeStream.format("noop").outputMode(mode).option("checkpointLocation", tmp + "/" + folder).trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(90)


def failure(action):
    try:
        action()
        print("NO FAILURE")
    except PySparkException as e:
        cause = str(e).split("\n")[0].split("terminated with exception: ", 1)[-1]
        print(type(e).__name__, condition(e), cause if "DELTA_FILE" not in cause else cause.split("]")[0])


write_lines(tmp + "/in/1.json", [{"k": "a", "n": 1}])
stream = spark.readStream.schema("k string, n int").json(tmp + "/in")
start(stream, "one", "append")
start(stream.groupBy("k").count(), "two")
start(stream.dropDuplicates(["k"]), "three")
write_lines(tmp + "/in/2.json", [{"k": "b", "n": 2}])
failure(lambda: start(stream.groupBy("k").count(), "one"))
failure(lambda: start(stream.groupBy("n").count(), "two"))
failure(lambda: start(stream.groupBy("k").sum("n"), "two"))
failure(lambda: start(stream.dropDuplicates(["k"]), "two"))
failure(lambda: start(stream.dropDuplicates(["k", "n"]), "three"))
start(stream.withColumnRenamed("k", "key").groupBy("key").count().selectExpr("count + 1"), "two")
print("another name: no failure")
