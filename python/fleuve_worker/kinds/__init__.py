"""One module is one kind of task: `run(task)` does it (see `fleuve_worker.tasks.Task`)."""
