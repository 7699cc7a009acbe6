# A data source in Python: options, schemas as DDL text and as StructType, partitions, tuples, lists, Rows, Arrow batches.
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, StringType, StructField, StructType


class Range(InputPartition):
    def __init__(self, first, last):
        self.first, self.last = first, last


class CountReader(DataSourceReader):
    def __init__(self, schema, options):
        self.schema, self.options = schema, options

    def partitions(self):
        parts = int(self.options.get("parts", "2"))
        size = int(self.options["ROWS"]) // parts
        return [Range(i * size, (i + 1) * size) for i in range(parts)]

    def read(self, partition):
        for i in range(partition.first, partition.last):
            yield (i, "n%d" % i)


class Count(DataSource):
    @classmethod
    def name(cls):
        return "conf_count"

    def schema(self):
        return "id INT, name STRING"

    def reader(self, schema):
        return CountReader(schema, self.options)


class Shapes(DataSource):
    def schema(self):
        return StructType([StructField("a", IntegerType(), False), StructField("b", StringType())])

    def reader(self, schema):
        kind = self.options.get("kind")
        names = schema.fieldNames()

        class Reader(DataSourceReader):
            def read(self, partition):
                print(partition)
                if kind == "rows":
                    from pyspark.sql import Row

                    yield Row(b="x", a=1)
                    yield Row(a=2, b=None)
                elif kind == "lists":
                    yield [3, "y"]
                elif kind == "arrow":
                    import pyarrow

                    yield pyarrow.RecordBatch.from_pydict({"a": pyarrow.array([4, 5], pyarrow.int32()), "b": ["z", None]})
                    yield pyarrow.RecordBatch.from_pydict({"a": pyarrow.array([6], pyarrow.int32()), "b": ["w"]})
                elif kind == "names":
                    yield (7, ",".join(names))
                else:
                    return
                    yield

        return Reader()


spark.dataSource.register(Count)
spark.dataSource.register(Shapes)
show(spark.read.format("conf_count").option("rows", 6).load())
show(spark.read.format("CONF_COUNT").options(rows=6, parts=3).load().where("id % 2 = 0").groupBy().sum("id"))
df = spark.read.format("conf_count").option("Rows", "4").load()
df.createOrReplaceTempView("counted")
show(spark.sql("select a.name, b.id from counted a join counted b on a.id = b.id + 1"))
print(df.limit(2).count(), df.count())
for kind in ("rows", "lists", "arrow", "names", "none"):
    show(spark.read.format("Shapes").option("kind", kind).load(), label=kind)
show(spark.read.format("shapes").schema("q INT, r STRING").option("kind", "names").load())
spark.read.format("conf_count").option("rows", 2).load().printSchema()
spark.read.format("shapes").load().printSchema()
