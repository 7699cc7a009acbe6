# Functions of the user in SQL and DataFrames: clauses they do not take, names of columns, VARIANT results, join conditions.
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf, udtf

df = spark.createDataFrame([(1, "a", 1.0), (2, "a", 2.0), (3, "b", 4.0)], "id long, k string, v double")
df.createOrReplaceTempView("df")


@udf("long")
def plus(x):
    return x + 1


@pandas_udf("double")
def mean(s: pd.Series) -> float:
    return s.mean()


@pandas_udf("long")
def first_of(d: pd.DataFrame) -> pd.Series:
    return d["id"]


@udtf(returnType="a int")
class One:
    def eval(self):
        yield 1,


spark.udf.register("plus", plus)
spark.udf.register("mean_of", mean)
spark.udtf.register("one", One)
error(lambda: spark.sql("SELECT mean_of(DISTINCT v) FROM df"), "DISTINCT")
error(lambda: spark.sql("SELECT mean_of(v) FILTER (WHERE id > 2) FROM df"), "FILTER")
error(lambda: spark.sql("SELECT plus(DISTINCT id) FROM df"), "DISTINCT of a scalar function")
error(lambda: spark.sql("SELECT plus(id) FILTER (WHERE id > 2) FROM df"), "FILTER of a scalar function")
error(lambda: spark.sql("SELECT upper(k) FILTER (WHERE id > 2) FROM df"), "FILTER of upper")
error(lambda: spark.sql("SELECT one()"), "a table function as a value")
error(lambda: df.join(df.alias("b"), udf(lambda: True, "boolean").asNondeterministic()()), "join by chance")
error(lambda: spark.range(2).join(spark.range(2), F.rand() > 2), "join by rand")
error(lambda: spark.sql("SELECT * FROM range(2) a JOIN range(2) b ON a.id = b.id AND uuid() = 'x'"), "join by uuid")
show(df.select(plus(F.col("v").cast("long")), first_of(F.struct("id", "k")), plus(F.col("id") + 1)))
show(df.groupBy("k").agg(mean(F.col("id").cast("double"))))
show(df.groupBy("k").agg(plus(F.sum("id"))))
error(lambda: df.groupBy("k").agg(mean("v"), plus(F.sum("id"))), "two kinds of aggregates")
variants = spark.sql("SELECT parse_json('{\"a\": [1, 2]}') AS v, 1 AS one")
for arrow in (False, True):
    show(variants.select(udf(lambda x: x, "variant", useArrow=arrow)("v").alias("r")).selectExpr("to_json(r)", "r:a[1]"))
    show(variants.select(udf(lambda x: [x, None], "array<variant>", useArrow=arrow)("v").alias("r")).selectExpr("to_json(r[0])", "r[1]"))
error(lambda: df.groupBy("k", "id").cogroup(df.groupBy("k")).applyInPandas(lambda a, b: a, df.schema), "keys of another number")
