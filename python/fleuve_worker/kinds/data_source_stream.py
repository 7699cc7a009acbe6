"""The reader of a stream of a data source that the user wrote; it stays here for the length of the query.

    header   schema, most_rows
    blobs    the pickled source
    asks     its last answer, at first {}; what comes back is the next call:
             {"call": "initial"}, {"call": "latest"}            answer: {"offset": JSON text}
             {"call": "partitions", "start", "end"}             answer: {"partitions": true} and their stream, or
                                                                {"rows": true} and the rows, where the reader has them
             {"call": "function"}                               answer: {} and the pickled function that reads partitions
             {"call": "commit", "end"}                          answer: {}
             {"stop": true}
"""

import json

from fleuve_worker import sources


def run(task):
    from pyspark.sql.datasource_internal import _streamReader

    source = sources.registered_source(task)
    schema = sources.schema_of(task.header["schema"])
    stream = Stream(task, source, schema, _streamReader(source, schema))
    try:
        answer, data = {}, b""
        while True:
            call, _ = task.ask(answer, data)
            if call.get("stop"):
                return
            answer, data = getattr(stream, call["call"])(call)
    finally:
        stream.reader.stop()


class Stream:
    def __init__(self, task, source, schema, reader):
        self.most_rows = task.header["most_rows"]
        self.source, self.schema, self.reader = source, schema, reader

    def initial(self, call):
        return {"offset": json.dumps(self.reader.initialOffset())}, b""

    def latest(self, call):
        return {"offset": json.dumps(self.reader.latestOffset())}, b""

    def partitions(self, call):
        start, end = sources.parse(call["start"]), sources.parse(call["end"])
        partitions = self.reader.partitions(start, end)
        cached = getattr(self.reader, "getCache", None)
        rows = cached(start, end) if cached is not None else None
        if rows is not None:
            batches = list(sources.to_batches(rows, self.most_rows, self.schema, self.source))
            return {"rows": True}, sources.arrow_stream(batches[0].schema, batches) if batches else b""
        return {"partitions": True}, sources.partition_stream(partitions)

    def function(self, call):
        from pyspark.sql.datasource_internal import _streamReader

        # Partitions are read by a reader of their own, as in every other process.
        reader = _streamReader(self.source, self.schema)
        return {}, sources.pickled((sources.ReadFunction(reader, self.source, self.schema, self.most_rows), self.schema))

    def commit(self, call):
        self.reader.commit(sources.parse(call["end"]))
        return {}, b""
