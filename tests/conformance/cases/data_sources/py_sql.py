# Python data sources named in SQL.
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, WriterCommitMessage


class Named(DataSource):
    @classmethod
    def name(cls):
        return "conf_named"

    def schema(self):
        return "id int, path string"

    def reader(self, schema):
        options = dict(self.options.items())

        class Reader(DataSourceReader):
            def read(self, partition):
                yield (1, str(sorted((k.lower(), v) for k, v in options.items())))

        return Reader()


spark.dataSource.register(Named)
spark.sql("create or replace temporary view named_view using conf_named options (a '1', B 'two')")
show(spark.sql("select * from named_view"))
show(spark.read.format("conf_named").load("/some/path"))
show(spark.read.format("conf_named").load(["/p1", "/p2"]))
show(spark.read.format("conf_named").option("path", "/x").load())
error(lambda: spark.sql("select * from conf_named.`/some/path`"), label="path in SQL")
