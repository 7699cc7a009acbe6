# Filters that go down into a reader in Python.
from pyspark.sql.datasource import DataSource, DataSourceReader


class Reader(DataSourceReader):
    def __init__(self, options):
        self.options = options
        self.kept = []

    def pushFilters(self, filters):
        refuse = self.options.get("refuse")
        self.kept = filters
        if refuse == "all":
            return filters
        return []

    def read(self, partition):
        texts = sorted(str(f) for f in self.kept)
        for text in texts or ["none"]:
            yield (1, text, None)


class Filtered(DataSource):
    def schema(self):
        return "id int, s string, st struct<a: int, b: struct<c: string>>, d date, ts timestamp, dec decimal(5,2), bin binary, l bigint, b boolean, f double"

    def reader(self, schema):
        reader = Reader(self.options)
        width = len(schema.fields)
        inner = reader.read
        reader.read = lambda partition: ((r + (None,) * (width - 3)) for r in inner(partition))
        return reader


spark.dataSource.register(Filtered)
error(lambda: spark.read.format("filtered").load().collect(), label="switched off", message=True)
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
show(spark.read.format("filtered").load().select("id", "s"))
for condition in (
    "id = 1", "id > 0 and id < 5", "1 <= id", "id >= 1", "id <=> 1", "id in (1, 2, 3)", "id is not null", "id is null",
    "s is null or id = 1", "not (id = 1)", "id <> 1", "id not in (2, 3)", "s like 'a%'", "s like '%a'", "s like '%a%'",
    "startswith(s, 'x')", "st.a = 3", "st.b.c = 'q'", "d = date'2020-01-02'", "ts > timestamp'2020-01-02 03:04:05'",
    "dec = 1.25", "bin = X'00ff'", "l = 5", "b", "not b", "b = true", "f > 1.5", "id + 1 = 2", "upper(s) = 'A'", "id = l", "s = 'it''s'",
    "id = 1 or id = 2", "s not like 'a%'",
):
    show(spark.read.format("filtered").load().where(condition).select("id", "s"), label=condition)
show(spark.read.format("filtered").option("refuse", "all").load().where("id = 1").select("id", "s"), label="refused")
show(spark.read.format("filtered").option("refuse", "all").load().where("id = 2").select("id", "s"), label="refused, none")
spark.conf.unset("spark.sql.python.filterPushdown.enabled")
