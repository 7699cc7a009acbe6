# Values of every type through a reader and a writer in Python.
import datetime as dt
from decimal import Decimal
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, WriterCommitMessage

DDL = ("b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, dec decimal(10,2), str string, bin binary, "
       "dat date, ts timestamp, ntz timestamp_ntz, arr array<int>, m map<string,int>, st struct<x: int, y: array<string>>, "
       "dti interval day to second")


class Types(DataSource):
    def schema(self):
        return DDL

    def reader(self, schema):
        class Reader(DataSourceReader):
            def read(self, partition):
                yield (True, 1, 2, 3, 4, 1.5, 2.5, Decimal("12.34"), "é", b"\x00\xff", dt.date(2020, 2, 3),
                       dt.datetime(2020, 2, 3, 4, 5, 6, 7), dt.datetime(2021, 2, 3, 4, 5, 6, 7), [1, None], {"a": 1, "b": None},
                       (1, ["p", None]), dt.timedelta(days=1, seconds=2))
                yield (None,) * 17

        return Reader()

    def writer(self, schema, overwrite):
        path = self.options["file"]

        class Writer(DataSourceWriter):
            def write(self, iterator):
                lines = [repr(row) for row in iterator]
                with open(path, "w") as f:
                    f.write("\n".join(lines))
                return WriterCommitMessage()

        return Writer()


spark.dataSource.register(Types)
df = spark.read.format("types").load()
show(df)
df.coalesce(1).write.format("types").mode("append").option("file", tmp + "/out").save()
print(open(tmp + "/out").read())
print(df.schema.json())
