"""Runs the user's functions over the rows of an operator of a query (see `src/python/external_runtime.cc`)."""

from fleuve_worker.functions import rows, scalar, state, table
from fleuve_worker.functions.job import Job

OPERATORS = {
    "evaluate": scalar.evaluate,
    "map": rows.map_rows,
    "group_map": rows.map_groups,
    "cogroup_map": rows.map_cogroups,
    "aggregate": rows.aggregate_groups,
    "group_state": state.group_state,
    "window": rows.windows,
    "table": table.per_row,
    "table_of_rows": table.per_partition,
}


def run(task):
    set_task_context(task.header["settings"])
    job = Job(task)
    OPERATORS[job.operator](job)
    job.flush()


def set_task_context(settings):
    """What TaskContext.get() shows to user code: the one partition of the one stage."""
    from pyspark.taskcontext import TaskContext

    context = TaskContext._getOrCreate()
    context._stageId = 0
    context._partitionId = 0
    context._attemptNumber = 0
    context._taskAttemptId = 0
    context._cpus = 1
    context._resources = {}
    context._localProperties = dict(settings)
