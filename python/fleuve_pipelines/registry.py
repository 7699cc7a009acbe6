"""Sends definitions to the server, with what PySpark's own classes cannot say filled in on the way."""

import contextvars

import pyspark.sql.connect.proto as pb2
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry

# What is to be added to the next definition: a function that changes its command.
_amendment = contextvars.ContextVar("fleuve_amendment", default=None)


class amended:
    """Within it, `change(command)` is called with every definition before it is sent."""

    def __init__(self, change):
        self.change = change

    def __enter__(self):
        self.token = _amendment.set(self.change)

    def __exit__(self, *_):
        _amendment.reset(self.token)


class _Client:
    """The client of a session; definitions pass the amendment."""

    def __init__(self, client):
        self._fleuve_client = client

    def __getattr__(self, name):
        return getattr(self._fleuve_client, name)

    def execute_command(self, command, *args, **kwargs):
        change = _amendment.get()
        if change is not None and command.HasField("pipeline_command"):
            change(command.pipeline_command)
        return self._fleuve_client.execute_command(command, *args, **kwargs)


class Registry(SparkConnectGraphElementRegistry):
    def __init__(self, spark, dataflow_graph_id):
        super().__init__(spark, dataflow_graph_id)
        self._client = _Client(self._client)

    @property
    def graph_id(self):
        return self._dataflow_graph_id

    @property
    def client(self):
        return self._client

    def send(self, pipeline_command):
        command = pb2.Command()
        command.pipeline_command.CopyFrom(pipeline_command)
        self._client.execute_command(command)


def install(cli):
    cli.SparkConnectGraphElementRegistry = Registry
