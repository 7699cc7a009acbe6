"""The module `dlt` of older programs: other names for the same definitions."""

import sys
import types

import pyspark.pipelines as pipelines
import pyspark.sql.connect.proto as pb2
from pyspark.sql import SparkSession

from fleuve_pipelines import definitions
from fleuve_pipelines.registry import amended


def read(name):
    """A dataset of the pipeline as a batch."""
    return SparkSession.active().read.table(name)


def read_stream(name):
    """A dataset of the pipeline as a stream."""
    return SparkSession.active().readStream.table(name)


def table(query_function=None, *, temporary=False, path=None, row_filter=None, **arguments):
    """A streaming table where its query is a stream, else a materialized view: the server sees which."""
    for unserved, value in (("temporary", temporary), ("path", path), ("row_filter", row_filter)):
        if value:
            raise NotImplementedError("dlt.table does not take %s here" % unserved)
    inner = pipelines.table(**arguments)

    def decide(command):
        if command.HasField("define_output"):
            command.define_output.output_type = pb2.OUTPUT_TYPE_UNSPECIFIED

    def define(function):
        properties = definitions.properties_of(getattr(function, "_fleuve_expectations", []))

        def change(command):
            decide(command)
            if properties and command.HasField("define_output"):
                command.define_output.table_details.table_properties.update(properties)

        plain = function
        if properties:
            # Its expectations are added here: within the amendment of this one, not in one of their own.
            def plain(*args, **kwargs):
                return function(*args, **kwargs)

            plain.__name__ = function.__name__
        with amended(change):
            return inner(plain)

    return define if query_function is None else define(query_function)


def install():
    module = types.ModuleType("dlt", __doc__)
    for name in pipelines.__all__:
        setattr(module, name, getattr(pipelines, name))
    module.table = table
    module.create_table = table
    module.view = pipelines.temporary_view
    module.create_view = pipelines.temporary_view
    module.read = read
    module.read_stream = read_stream
    module.readStream = read_stream
    module.apply_changes = pipelines.create_auto_cdc_flow
    module.create_target_table = pipelines.create_streaming_table
    module.create_streaming_live_table = pipelines.create_streaming_table
    sys.modules["dlt"] = module
