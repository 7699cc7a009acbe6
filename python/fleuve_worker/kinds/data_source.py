"""A data source that the user wrote: made, planned for a read, looked for among the installed modules.

    header   action and what goes with it

    create   provider, options, schema (JSON or null); blob 0: the pickled class
             gives the pickled source; result: schema (JSON) or ddl (text)
    plan     schema, filters, pushdown, most_rows; blob 0: the pickled source, blob 1: an Arrow stream, the filters' values
             gives the pickled function of the read, then its partitions; result: accepted, numbers of filters
    find     result: names of classes that installed modules offer, each given pickled in this order
"""

import json

from fleuve_worker import sources


def run(task):
    {"create": create, "plan": plan, "find": find}[task.header["action"]](task)


def create(task):
    source = sources.instance(task)
    given = task.header["schema"]
    schema = sources.schema_of(given) if given is not None else source.schema()
    assert schema is not None
    task.write(sources.pickled(source))
    task.result = {"ddl": schema} if isinstance(schema, str) else {"schema": json.loads(schema.json())}


def plan(task):
    from pyspark.sql.datasource import DataSourceReader

    header = task.header
    source = sources.registered_source(task)
    schema = sources.schema_of(header["schema"])
    reader = source.reader(schema=schema)
    if not isinstance(reader, DataSourceReader):
        raise sources.mismatch("PySparkAssertionError", "an instance of DataSourceReader", sources.type_name(reader))
    own = getattr(reader, "pushFilters", None)
    takes_filters = own is not None and getattr(own, "__func__", None) is not getattr(DataSourceReader, "pushFilters", None)
    if takes_filters and not header["pushdown"]:
        raise sources.failure(
            "PySparkAssertionError",
            "DATA_SOURCE_PUSHDOWN_DISABLED",
            type=type(reader).__name__,
            conf="spark.sql.python.filterPushdown.enabled",
        )
    accepted = push(task, reader) if header["filters"] and own is not None else []
    function = sources.ReadFunction(reader, source, schema, header["most_rows"])
    task.write(sources.pickled((function, schema)))
    task.write(sources.partition_stream(partitions_of(reader)))
    task.result = {"accepted": accepted}


def push(task, reader):
    """Hands the filters to the reader; numbers of those that it takes upon itself."""
    filters = filters_of(task)
    refused = {id(each): each for each in reader.pushFilters(list(filters))}
    accepted = []
    for number, each in enumerate(filters):
        if refused.pop(id(each), None) is None:
            accepted.append(number)
    if refused:
        raise sources.failure(
            "PySparkValueError",
            "DATA_SOURCE_EXTRANEOUS_FILTERS",
            type=type(reader).__name__,
            input=str(filters),
            extraneous=str(list(refused.values())),
        )
    return accepted


def filters_of(task):
    """The filters as PySpark's own objects. A filter names its class, column and the column of its value."""
    import pyarrow
    from pyspark.sql import datasource

    with pyarrow.ipc.open_stream(task.blobs[1]) as reader:
        values = reader.read_next_batch()
    made = []
    for description in task.header["filters"]:
        arguments = {"attribute": tuple(description["column"])}
        if "values" in description:
            arguments["value"] = [value_of(values.column(i)) for i in description["values"]]
        elif "value" in description:
            arguments["value"] = value_of(values.column(description["value"]))
        each = getattr(datasource, description["name"])(**arguments)
        made.append(datasource.Not(each) if description["negated"] else each)
    return made


def value_of(column):
    import datetime
    from zoneinfo import ZoneInfo

    value = column[0].as_py()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(ZoneInfo("UTC"))
    return value


def partitions_of(reader):
    from pyspark.sql.datasource import InputPartition

    try:
        partitions = reader.partitions()
    except NotImplementedError:
        return [None]
    if not isinstance(partitions, list):
        raise sources.mismatch("PySparkRuntimeError", "'partitions' to return a list", sources.type_name(partitions))
    if not all(isinstance(each, InputPartition) for each in partitions):
        raise sources.mismatch(
            "PySparkRuntimeError",
            "elements in 'partitions' to be of type 'InputPartition'",
            ", ".join(sources.type_name(each) for each in partitions),
        )
    return partitions or [None]


def find(task):
    from importlib import import_module
    from pkgutil import iter_modules

    from pyspark.sql.datasource import DataSource

    names = []
    for info in iter_modules():
        if not info.name.startswith("pyspark_"):
            continue
        offered = getattr(import_module(info.name), "DefaultSource", None)
        if isinstance(offered, type) and issubclass(offered, DataSource):
            names.append(offered.name())
            task.write(sources.pickled(offered))
    task.result = {"names": names}
