"""The process in which Fleuve runs the user's Python: functions of columns and groups, foreachBatch, foreach.

It is plain Python over the user's own PySpark (4.0 to 4.3, `pyspark` or `pyspark-client`), pandas and pyarrow; nothing
heavy is imported before a task needs it. One file below `kinds/` is one kind of task.
"""
