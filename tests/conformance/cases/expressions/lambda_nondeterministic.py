# Functions of chance and of the row's place inside lambdas: each evaluation draws anew, row by row, element by element.
from pyspark.sql import functions as F


def shown(text):
    print(text)
    try:
        print("  " + "; ".join(rows(spark.sql("SELECT " + text))))
    except PySparkException as e:
        print("  ERROR", condition(e), e.getSqlState() or "-")


for text in [
    "transform(array(1, 2, 3), x -> x + rand(5))",
    "transform(array(1, 2, 3), x -> rand(5) + rand(5))",
    "transform(array(1, 2, 3), (x, i) -> i + randn(5))",
    "transform(array(1, 2, 3), x -> randstr(5, 1)), transform(array(1, 2, 3), x -> uniform(1, 10, 3))",
    "size(array_distinct(transform(sequence(1, 3000), x -> rand())))",
    "size(array_distinct(transform(array(1, 2, 3), x -> uuid()))), transform(array(1, 2), x -> length(uuid()))",
    "forall(transform(array(1, 2, 3), x -> rand()), x -> x >= 0 AND x < 1)",
    "transform(array(1, 2, 3), x -> x + monotonically_increasing_id())",
    "transform(array(1, 2, 3), x -> shuffle(array(x)))",
    "transform(array(array(1, 2), array(3)), y -> transform(y, x -> x + rand(5)))",
    "transform(array(array(1, 2), array(3)), y -> aggregate(y, 0D, (a, x) -> a + x + rand(5)))",
    "filter(array(1, 2, 3, 4), x -> rand(5) < 0.5), exists(array(1, 2), x -> rand(5) > 2)",
    "aggregate(array(1, 2, 3), 0D, (a, x) -> a + rand(5))",
    "map_filter(map(1, 2, 3, 4), (k, v) -> rand(1) > 0.6), transform_values(map(1, 2), (k, v) -> v + rand(1))",
    "zip_with(array(1, 2), array(3, 4), (a, b) -> a + b + rand(1))",
    "array_sort(array(3, 1, 2), (a, b) -> CASE WHEN rand() >= 0 THEN a - b ELSE 0 END)",
    "size(array_sort(sequence(1, 500), (a, b) -> CASE WHEN rand() > 0.5 THEN 1 ELSE -1 END))",
    "transform(array(1, 2, 3), x -> rand(x))",
    "transform(array(1, 2, 3), x -> (SELECT 1))",
    "exists(array(1, 2, 3), x -> x IN (SELECT 1))",
    "exists(array(1, 2, 3), x -> EXISTS (SELECT 1))",
    "sum(size(transform(array(1, 2), x -> rand()))) FROM range(3)",
    "* FROM range(3) WHERE forall(array(1, 2), x -> rand() >= 0)",
    "id FROM range(2) GROUP BY id HAVING forall(array(1), x -> rand() >= 0)",
    "id, count(*) FROM range(2) GROUP BY id, transform(array(1), x -> rand(1))",
    "size(transform(array(1, 2, 3), x -> rand())) FROM range(3) ORDER BY rand()",
]:
    shown(text)
many = spark.range(0, 4, 1, 1)
pair = F.array(F.lit(1), F.lit(2))
show(many.select(F.transform(pair, lambda x: x + F.rand(5)).alias("r")))
show(many.select(F.aggregate(pair, F.lit(0.0), lambda a, x: a + F.rand(5)).alias("r")))
show(many.select(F.exists(pair, lambda x: F.rand(5) > 0.5).alias("e"), F.forall(pair, lambda x: F.rand(6) > 0.3).alias("f")))
show(many.select(F.transform(F.when(F.col("id") != 1, pair), lambda x: F.rand(5)).alias("r")))
