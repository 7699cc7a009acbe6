# A value that an option of the sink does not take is refused when the query starts; nothing is written.
source, sink = tmp + "/source", tmp + "/sink"
spark.range(3).write.format("delta").save(source)
spark.range(2).write.format("delta").save(sink)
for number, name in enumerate(["mergeSchema", "optimizeWrite"]):
    writer = spark.readStream.format("delta").load(source).writeStream.format("delta").option(name, "abc")
    writer = writer.option("checkpointLocation", "%s/checkpoint%d" % (tmp, number)).trigger(availableNow=True)
    try:
        writer.start(sink)
        print("started")
    except PySparkException as e:
        print(type(e).__name__, condition(e), json.dumps(e.getMessageParameters(), sort_keys=True))
print(spark.read.format("delta").load(sink).count())
