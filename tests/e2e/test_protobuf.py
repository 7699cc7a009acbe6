"""from_protobuf and to_protobuf beside Google's own implementation in Python."""

import datetime

import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, expr, lit, struct
from pyspark.sql.protobuf.functions import from_protobuf, to_protobuf

FIELD = descriptor_pb2.FieldDescriptorProto
KINDS = [
    ("i32", FIELD.TYPE_INT32), ("i64", FIELD.TYPE_INT64), ("u32", FIELD.TYPE_UINT32), ("u64", FIELD.TYPE_UINT64),
    ("s32", FIELD.TYPE_SINT32), ("f64", FIELD.TYPE_FIXED64), ("fl", FIELD.TYPE_FLOAT), ("db", FIELD.TYPE_DOUBLE),
    ("bo", FIELD.TYPE_BOOL), ("st", FIELD.TYPE_STRING), ("by", FIELD.TYPE_BYTES),
]


def well_known():
    files = []
    for module in (timestamp_pb2, duration_pb2, any_pb2, wrappers_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files.append(file)
    return files


def add(message, name, number, kind, label=FIELD.LABEL_OPTIONAL, type_name=None, oneof=None):
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if type_name:
        field.type_name = type_name
    if oneof is not None:
        field.oneof_index = oneof
    return field


def descriptors():
    files = well_known()
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    file.dependency.extend(f.name for f in files)
    color = file.enum_type.add(name="Color")
    for number, name in enumerate(["NONE", "RED", "BLUE"]):
        color.value.add(name=name, number=number)
    all_kinds = file.message_type.add(name="All")
    for number, (name, kind) in enumerate(KINDS, 1):
        add(all_kinds, name, number, kind)
    add(all_kinds, "color", 20, FIELD.TYPE_ENUM, type_name=".t.Color")
    add(all_kinds, "numbers", 21, FIELD.TYPE_INT64, FIELD.LABEL_REPEATED)
    add(all_kinds, "inner", 22, FIELD.TYPE_MESSAGE, type_name=".t.Inner")
    add(all_kinds, "inners", 23, FIELD.TYPE_MESSAGE, FIELD.LABEL_REPEATED, ".t.Inner")
    entry = all_kinds.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, FIELD.TYPE_STRING)
    add(entry, "value", 2, FIELD.TYPE_MESSAGE, type_name=".t.Inner")
    add(all_kinds, "counts", 24, FIELD.TYPE_MESSAGE, FIELD.LABEL_REPEATED, ".t.All.CountsEntry")
    add(all_kinds, "at", 25, FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    add(all_kinds, "lasts", 26, FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Duration")
    inner = file.message_type.add(name="Inner")
    add(inner, "x", 1, FIELD.TYPE_INT32)
    add(inner, "names", 2, FIELD.TYPE_STRING, FIELD.LABEL_REPEATED)
    person = file.message_type.add(name="Person")
    add(person, "name", 1, FIELD.TYPE_STRING)
    add(person, "friend", 2, FIELD.TYPE_MESSAGE, type_name=".t.Person")
    more = file.message_type.add(name="More")
    add(more, "any", 1, FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Any")
    add(more, "wrapped", 2, FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Int32Value")
    files.append(file)
    old = descriptor_pb2.FileDescriptorProto(name="old.proto", package="old", syntax="proto2")
    message = old.message_type.add(name="Old")
    add(message, "id", 1, FIELD.TYPE_INT32, FIELD.LABEL_REQUIRED)
    add(message, "word", 2, FIELD.TYPE_STRING).default_value = "none"
    add(message, "n", 3, FIELD.TYPE_INT32)
    files.append(old)
    files.append(descriptor_pb2.FileDescriptorProto(name="empty.proto", package="e", syntax="proto3"))
    files[-1].message_type.add(name="Empty")
    return descriptor_pb2.FileDescriptorSet(file=files)


SET = descriptors()
BYTES = SET.SerializeToString()


def kind(name):
    pool = descriptor_pool.DescriptorPool()
    for file in SET.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def read(spark, messages, name, options=None, **how):
    rows = [(m if m is None or isinstance(m, bytes) else m.SerializeToString(),) for m in messages]
    frame = spark.createDataFrame(rows, "value binary")
    how = how or {"binaryDescriptorSet": BYTES}
    return frame.select(from_protobuf("value", name, options=options, **how).alias("m")).select("m")


def full():
    m = kind("t.All")(i32=-1, i64=-2, u32=4000000000, u64=2**63 + 5, s32=-7, f64=9, fl=1.5, db=2.5, bo=True, st="é", by=b"\x00\xff")
    m.color = 2
    m.numbers.extend([1, 2])
    m.inner.x = 3
    m.inners.add(names=["a", "b"])
    m.inners.add()
    m.counts["k"].x = 4
    m.at.FromDatetime(datetime.datetime(2020, 1, 2, 3, 4, 5, 678901))
    m.lasts.FromTimedelta(datetime.timedelta(days=1, microseconds=5))
    return m


SCHEMA = (
    "struct<m:struct<i32:int,i64:bigint,u32:int,u64:bigint,s32:int,f64:bigint,fl:float,db:double,bo:boolean,st:string,by:binary,"
    "color:string,numbers:array<bigint>,inner:struct<x:int,names:array<string>>,inners:array<struct<x:int,names:array<string>>>,"
    "counts:map<string,struct<x:int,names:array<string>>>,at:timestamp,lasts:interval day to second>>"
)


def test_every_kind_of_field(spark):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = read(spark, [full(), kind("t.All")(), None], "All")
    assert frame.schema.simpleString() == SCHEMA
    first, empty, null = (row.m for row in frame.collect())
    assert null is None
    assert (first.i32, first.i64, first.u32, first.u64) == (-1, -2, 4000000000 - 2**32, -(2**63) + 5)
    assert (first.s32, first.f64, first.fl, first.db, first.bo, first.st, bytes(first.by)) == (-7, 9, 1.5, 2.5, True, "é", b"\x00\xff")
    assert first.color == "BLUE" and first.numbers == [1, 2] and first.inner == (3, [])
    assert first.inners == [(None, ["a", "b"]), (None, [])] and first.counts == {"k": (4, [])}
    assert frame.selectExpr("cast(m.at as string)", "cast(m.lasts as string)").first() == (
        "2020-01-02 03:04:05.678901",
        "INTERVAL '1 00:00:00.000005' DAY TO SECOND",
    )
    assert empty.i32 is None and empty.st is None and empty.inner is None and empty.color is None
    assert empty.numbers == [] and empty.counts == {}


def test_options(spark):
    given = {"emit.default.values": "true", "enums.as.ints": "true", "upcast.unsigned.ints": "true"}
    frame = read(spark, [full(), kind("t.All")()], "t.All", given)
    first, empty = (row.m for row in frame.collect())
    assert (first.u32, int(first.u64), first.color) == (4000000000, 2**63 + 5, 2)
    assert (empty.i32, empty.st, empty.bo, empty.color, empty.inner) == (0, "", False, 0, None)
    with pytest.raises(PySparkException) as failed:
        read(spark, [], "All", {"no.such.option": "true"}).schema
    assert "no.such.option" in str(failed.value)


def test_recursion_and_empty_messages(spark):
    with pytest.raises(PySparkException) as failed:
        read(spark, [], "Person").schema
    assert failed.value.getCondition() == "RECURSIVE_PROTOBUF_SCHEMA"
    shapes = {1: "struct<name:string>", 2: "struct<name:string,friend:struct<name:string>>"}
    for depth, shape in shapes.items():
        frame = read(spark, [], "Person", {"recursive.fields.max.depth": str(depth)})
        assert frame.schema["m"].dataType.simpleString() == shape
    person = kind("t.Person")(name="a")
    person.friend.name = "b"
    person.friend.friend.name = "c"
    assert read(spark, [person], "Person", {"recursive.fields.max.depth": "2"}).first().m == ("a", ("b",))
    assert read(spark, [], "Empty").schema["m"].dataType.simpleString() == "struct<>"
    kept = read(spark, [], "Empty", {"retain.empty.message.types": "true"}).schema["m"].dataType.simpleString()
    assert kept == "struct<__dummy_field_in_empty_struct:string>"


def test_any_and_wrappers(spark):
    m = kind("t.More")()
    m.any.Pack(kind("t.Inner")(x=5, names=["n"]))
    m.wrapped.value = 8
    plain = read(spark, [m], "More").first().m
    assert plain.any.type_url == "type.googleapis.com/t.Inner" and plain.wrapped == (8,)
    told = read(spark, [m], "More", {"convert.any.fields.to.json": "true", "unwrap.primitive.wrapper.types": "true"}).first().m
    assert told.any == '{"@type":"type.googleapis.com/t.Inner","x":5,"names":["n"]}' and told.wrapped == 8


def test_proto2(spark):
    old = kind("old.Old")
    frame = read(spark, [old(id=1), old(id=2, word="w", n=0)], "Old")
    assert frame.schema["m"].dataType.simpleString() == "struct<id:int,word:string,n:int>"
    assert not frame.schema["m"].dataType["id"].nullable
    assert [tuple(row.m) for row in frame.collect()] == [(1, "none", None), (2, "w", 0)]
    with pytest.raises(PySparkException) as failed:
        read(spark, [b""], "Old").collect()  # the required field is missing
    assert failed.value.getCondition() == "MALFORMED_PROTOBUF_MESSAGE"


def test_malformed_messages(spark):
    bad = [b"\xff\xff", kind("t.Inner")(x=1).SerializeToString()]
    with pytest.raises(PySparkException) as failed:
        read(spark, bad, "Inner").collect()
    assert failed.value.getCondition() == "MALFORMED_PROTOBUF_MESSAGE"
    assert [row.m for row in read(spark, bad, "Inner", {"mode": "PERMISSIVE"}).collect()] == [None, (1, [])]
    # x as a text
    assert read(spark, [b"\x0a\x01a"], "Inner", {"mode": "permissive"}).first().m is None
    with pytest.raises(PySparkException) as failed:
        read(spark, bad, "Inner", {"mode": "DROPMALFORMED"}).collect()
    assert failed.value.getCondition() == "PARSE_MODE_UNSUPPORTED"


@pytest.mark.parametrize(
    "name, descriptor, condition",
    [
        ("Nope", BYTES, "PROTOBUF_MESSAGE_NOT_FOUND"),
        ("All", b"\xff\x01", "CANNOT_PARSE_PROTOBUF_DESCRIPTOR"),
        ("All", descriptor_pb2.FileDescriptorSet(file=[SET.file[4]]).SerializeToString(), "PROTOBUF_DEPENDENCY_NOT_FOUND"),
        ("All", None, "CANNOT_LOAD_PROTOBUF_CLASS"),
    ],
)
def test_descriptors_that_do_not_do(spark, name, descriptor, condition):
    with pytest.raises(PySparkException) as failed:
        read(spark, [], name, binaryDescriptorSet=descriptor).schema
    assert failed.value.getCondition() == condition


def test_a_descriptor_file(spark, folder):
    with open(folder + "/t.desc", "wb") as f:
        f.write(BYTES)
    assert read(spark, [kind("t.Inner")(x=4)], "Inner", descFilePath=folder + "/t.desc").first().m == (4, [])
    spark.createDataFrame([(kind("t.Inner")(x=6).SerializeToString(),)], "value binary").createOrReplaceTempView("messages")
    made = spark.sql("select from_protobuf(value, 'Inner', '%s/t.desc', map('mode', 'FAILFAST')) as m from messages" % folder)
    assert made.first().m == (6, [])
    with pytest.raises(PySparkException) as failed:
        spark.sql("select from_protobuf(value, 'Inner', '%s/none') from messages" % folder).collect()
    assert failed.value.getCondition() == "PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND"


def test_there_and_back(spark):
    frame = read(spark, [full(), kind("t.All")(), None], "All")
    written = frame.select(to_protobuf("m", "All", binaryDescriptorSet=BYTES).alias("b")).collect()
    assert written[2].b is None
    assert [str(kind("t.All").FromString(bytes(row.b))) for row in written[:2]] == [str(full()), str(kind("t.All")())]
    big = spark.range(20000).select(struct(col("id").cast("int").alias("x"), expr("array(cast(id as string))").alias("names")).alias("m"))
    bytes_of = to_protobuf("m", "Inner", binaryDescriptorSet=BYTES)
    back = big.select(from_protobuf(bytes_of, "Inner", binaryDescriptorSet=BYTES).alias("m"))
    assert back.selectExpr("sum(m.x)", "sum(cast(m.names[0] as bigint))").first() == (199990000, 199990000)


@pytest.mark.parametrize(
    "column, name, condition",
    [
        (struct(lit(1).alias("x"), lit(2).alias("y")), "Inner", "UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE"),
        (struct(lit("a").alias("x")), "Inner", "UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE"),
        (struct(lit("w").alias("word")), "Old", "UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE"),
        (struct(lit("GREEN").alias("color")), "All", "CANNOT_CONVERT_SQL_VALUE_TO_PROTOBUF_ENUM_TYPE"),
    ],
)
def test_values_that_do_not_fit(spark, column, name, condition):
    with pytest.raises(PySparkException) as failed:
        spark.range(1).select(to_protobuf(column, name, binaryDescriptorSet=BYTES)).collect()
    assert failed.value.getCondition() == condition
