# numRowsTotal of a join counts each waiting row once; a limit updates one state row.
from pyspark.sql import functions as F


def last(query):
    return [p for p in query.recentProgress if "addBatch" in p.durationMs][0].stateOperators


spark.conf.set("spark.sql.shuffle.partitions", 2)
write_lines(tmp + "/in/a.json", [{"k": k, "t": "2024-01-01 10:0%d:00" % n} for n, k in enumerate(["a", "a", "b"])])
stream = lambda: spark.readStream.schema("k string, t timestamp").json(tmp + "/in").withWatermark("t", "1 hour")
for how in ("inner", "left", "leftsemi"):
    near = F.expr("a.k = b.k AND a.t BETWEEN b.t AND b.t + INTERVAL 5 MINUTES")
    joined = stream().alias("a").join(stream().alias("b"), near, how)
    query = run_stream(joined.writeStream.format("noop").trigger(availableNow=True))
    print(how, [(s.operatorName, s.numRowsTotal, s.numRowsUpdated) for s in last(query)])
query = run_stream(stream().limit(2).writeStream.format("noop").trigger(availableNow=True))
print("limit", [(s.operatorName, s.numRowsTotal, s.numRowsUpdated) for s in last(query)])
