"""The program behind `fleuve pipelines`: PySpark's own pipelines command, with what it lacks put beside it.

Definition files may use expectations, flows that run once and AUTO CDC in `pyspark.pipelines`, and the older module `dlt`.
Everything reaches the server in the messages of Spark Connect. Spec files are read without PyYAML where it is missing.
"""
