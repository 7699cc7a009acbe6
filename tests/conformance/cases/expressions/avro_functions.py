# from_avro, to_avro and schema_of_avro: kinds, logical types, unions, evolution, recursion, modes and options.
import json

from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import col, expr, hex, lit, struct


def record(*fields, name="r"):
    return json.dumps({"type": "record", "name": name, "fields": [dict(zip(("name", "type", "default"), f)) for f in fields]})


def read(text, schema, options=None, label=None):
    show(spark.sql(f"SELECT unhex('{text}') AS v").select(from_avro("v", schema, options or {}).alias("x")), label=label)


def fails(text, schema, options=None, label=None):
    error(lambda: spark.sql(f"SELECT unhex('{text}') AS v").select(from_avro("v", schema, options or {}).alias("x")).collect(), label=label)


pair = record(("a", "int"), ("b", ["null", "string"]))
df = spark.createDataFrame([(1, "x", [1, None], {"k": 2}), (2, None, None, {"q": None, "b": 3})], "a INT, b STRING, l ARRAY<INT>, m MAP<STRING, INT>")
show(df.select(hex(to_avro(struct("a", "b", "l", "m"))).alias("h"), hex(to_avro("b")).alias("b"), hex(to_avro("a", '"int"')).alias("a")))
show(df.select(from_avro(to_avro(struct("a", "b")), record(("a", ["int", "null"]), ("b", ["string", "null"]))).alias("x")).select("x.*"))
print(spark.sql("SELECT unhex('0200') AS v").select(from_avro("v", pair).alias("x")).schema.json())
print(spark.sql("SELECT unhex('0200') AS v").select(from_avro("v", pair, {"mode": "PERMISSIVE"}).alias("x")).schema.json())
print(df.select(from_avro(to_avro("a"), '"int"')).columns, df.select(to_avro("a")).columns)

# Broken values.
read("", pair, {"mode": "PERMISSIVE"}, "a struct of NULLs")
read("02", '"string"', {"mode": "permissive"}, "NULL")
fails("", pair, label="FAILFAST is the default")
fails("", pair, {"mode": "DROPMALFORMED"})

# Kinds and logical types.
for text, schema in [("03", '"int"'), ("ffffffffffffffffff01", '"long"'), ("0000c03f", '"float"'), ("000000000000f83f", '"double"'), ("01", '"boolean"'),
                     ("04c3a9", '"string"'), ("0402ff", '"bytes"'), ("02ff", '{"type":"fixed","name":"f","size":2}'), ("02", '{"type":"enum","name":"E","symbols":["P","Q"]}'),
                     ("02", '{"type":"int","logicalType":"date"}'), ("02", '{"type":"long","logicalType":"timestamp-millis"}'), ("02", '{"type":"long","logicalType":"timestamp-micros"}'),
                     ("02", '{"type":"long","logicalType":"local-timestamp-millis"}'), ("02", '{"type":"long","logicalType":"time-micros"}'), ("02", '{"type":"int","logicalType":"timestamp-millis"}'),
                     ("04007d", '{"type":"bytes","logicalType":"decimal","precision":5,"scale":2}'), ("00ff", '{"type":"fixed","name":"f","size":2,"logicalType":"decimal","precision":4,"scale":1}'),
                     ("00ff", '{"type":"fixed","name":"f","size":2,"logicalType":"decimal","precision":5,"scale":1}'), ("02", '{"type":"long","spark.sql.catalyst.type":"interval day to second"}'),
                     ("0304060800", '{"type":"array","items":"int"}'), ("06026b02027a0402610600", '{"type":"map","values":"int"}'), ("0004", '["int","null"]'), ("0004", '["int","long"]')]:
    read(text, schema, label=schema)

# Unions of several types.
union = record(("u", ["null", "int", "string", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}]))
for options in [{}, {"enableStableIdentifiersForUnionType": "true"}, {"enableStableIdentifiersForUnionType": "true", "stableIdentifierPrefixForUnionType": "u_"}]:
    for text in ["00", "0202", "04027a", "0602"]:
        read(text, union, options)
fails("08", union)

# Evolution.
evolved = json.dumps({"type": "record", "name": "other", "fields": [
    {"name": "b", "type": ["null", "string"]}, {"name": "a", "type": "double"}, {"name": "c", "type": "string", "default": "dd"},
    {"name": "n", "type": ["null", "int"], "default": None}, {"name": "m", "type": {"type": "map", "values": "int"}, "default": {"x": 1}},
    {"name": "r", "type": {"type": "record", "name": "s", "fields": [{"name": "k", "type": "long"}, {"name": "z", "type": "string", "default": "zz"}]}, "default": {"k": 7}}]})
read("0202026161", pair, {"avroSchema": evolved}, "defaults and promotion")
read("0202026161", pair, {"avroSchema": record(("b", "string"))}, "fewer fields")
read("02", '{"type":"enum","name":"E","symbols":["P","Q"]}', {"avroSchema": '{"type":"enum","name":"E","symbols":["P"],"default":"P"}'})
read("02", '"int"', {"avroSchema": '["null","long"]'})
fails("0202026161", pair, {"avroSchema": record(("z", "int"))}, "a field without default")
fails("02", '"long"', {"avroSchema": '"int"'}, "no promotion")

# Recursion.
node = record(("Id", "int"), ("Next", ["null", "Node"]), name="Node")
for depth in ["1", "2", "3"]:
    read("020204020600", node, {"recursiveFieldMaxDepth": depth})
fails("0200", node, {"recursiveFieldMaxDepth": "16"})
fails("0200", node, {"recursiveFieldMaxDepth": "x"})
fails("0200", pair, {"enableStableIdentifiersForUnionType": "maybe"})

# Writing.
for value in ["1", "1L", "1.5D", "true", "'abc'", "x'0102'", "date'2024-01-02'", "timestamp'2024-01-02 03:04:05.678901'", "timestamp_ntz'2024-01-02 03:04:05.678901'",
              "1.25", "cast(-1.25 as decimal(20,2))", "array(1,2,null)", "map('b',1,'a',2,'zz',3)", "struct(1 as a, null as b)", "interval '1' year", "interval '1' day", "array(struct(1 as x))"]:
    show(spark.sql(f"SELECT hex(to_avro({value})) AS h"), label=value)
for value, schema in [("'Q'", '{"type":"enum","name":"E","symbols":["P","Q"]}'), ("x'0102'", '{"type":"fixed","name":"f","size":2}'), ("timestamp'1950-01-02 03:04:05.678901'", '{"type":"long","logicalType":"timestamp-millis"}'),
                      ("cast(-1.25 as decimal(5,2))", '{"type":"bytes","logicalType":"decimal","precision":5,"scale":2}'), ("1L", '["null","int","long"]'), ("struct(1 as a)", pair), ("struct('x' as B, 1 as A)", pair),
                      ("struct(struct(cast(null as int) as member0, 'q' as member1) as u)", record(("u", ["null", "int", "string"]))), ("array(1,null)", '{"type":"array","items":["null","int"]}')]:
    show(spark.sql(f"SELECT hex(to_avro({value}, '{schema}')) AS h"), label=value)
error(lambda: spark.sql(f"SELECT to_avro(struct(cast(null as int) as a, 'x' as b), '{pair}')").collect())

# SQL.
show(spark.sql(f"SELECT from_avro(x'0202026161', '{pair}') AS a, from_avro(x'', '{pair}', map('mode', 'PERMISSIVE')) AS b"))
show(spark.sql(f"SELECT schema_of_avro('{pair}') AS a, schema_of_avro('{pair}', map('mode', 'PERMISSIVE')) AS b, schema_of_avro('{node}', map('recursiveFieldMaxDepth', '2')) AS c"))
error(lambda: spark.sql(f"SELECT from_avro(x'02', s) FROM VALUES ('\"int\"') t(s)").collect())
error(lambda: spark.sql("SELECT from_avro(x'02', '\"int\"', 1)").collect())
error(lambda: spark.sql("SELECT from_avro(x'02')").collect())
error(lambda: spark.sql("SELECT to_avro(1, 2)").collect())
error(lambda: spark.sql("SELECT schema_of_avro(1)").collect())
error(lambda: spark.sql(f"SELECT schema_of_avro('{pair}', map('mode', 'DROPMALFORMED'))").collect())
