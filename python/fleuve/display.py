"""display(): rows of a frame as a table; a streaming frame as a query whose newest rows and progress are shown."""

import html
import threading
import uuid

ROWS = 1000  # a notebook shows so many rows at most


def _in_notebook():
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _cell(value):
    return "<i>null</i>" if value is None else html.escape(str(value))


def _table(columns, rows, more):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(v)}</td>" for v in row) + "</tr>" for row in rows)
    note = f"<p>only the first {ROWS} rows</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _progress_line(query):
    progress = query.lastProgress
    if progress is None:
        return query.status["message"]
    rows = sum(source["numInputRows"] for source in progress["sources"])
    return (
        f"batch {progress['batchId']}: {rows} rows in {progress['batchDuration']} ms"
        f" ({progress['processedRowsPerSecond'] or 0:.0f} rows/s); {query.status['message']}"
    )


class _Live:
    """Redraws a running query every second until it ends."""

    def __init__(self, spark, name, query):
        from IPython.display import HTML, display

        self._make = HTML
        self._spark, self._name, self._query = spark, name, query
        self._handle = display(HTML("<p>starting</p>"), display_id=True)
        threading.Thread(target=self._run, name=f"display of {name}", daemon=True).start()

    def _draw(self, state):
        frame = self._spark.table(self._name)
        rows = frame.limit(ROWS + 1).collect()
        text = f"<p><b>{html.escape(self._name)}</b> ({state}) {html.escape(_progress_line(self._query))}</p>"
        self._handle.update(self._make(text + _table(frame.columns, rows[:ROWS], len(rows) > ROWS)))

    def _run(self):
        ended = False
        while not ended:
            try:
                ended = self._query.awaitTermination(1)
                self._draw("ended" if ended else "running")
            except Exception as error:  # the query failed, or the server is gone: say so where the user looks
                self._handle.update(self._make(f"<pre>{html.escape(str(error))}</pre>"))
                return


def display(frame, name=None, checkpoint=None, trigger=None, mode=None):
    """Shows a frame. Returns None for a batch frame, the running StreamingQuery for a streaming one.

    A streaming frame is started into an in-memory table called `name` (else `display_` and a number); outside a notebook
    its progress is printed once and the table can be queried by that name.

    checkpoint  folder of the query's checkpoint; without it a temporary one.
    trigger     arguments of writeStream.trigger, e.g. {"availableNow": True}.
    mode        output mode; append.
    """
    if not hasattr(frame, "isStreaming"):
        raise TypeError(f"display() takes a DataFrame, not {type(frame).__name__}")
    if not frame.isStreaming:
        if not _in_notebook():
            frame.show()
            return None
        from IPython.display import HTML
        from IPython.display import display as show

        rows = frame.limit(ROWS + 1).collect()
        show(HTML(_table(frame.columns, rows[:ROWS], len(rows) > ROWS)))
        return None
    name = name or "display_" + uuid.uuid4().hex[:8]
    writer = frame.writeStream.format("memory").queryName(name).outputMode(mode or "append")
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger is not None:
        writer = writer.trigger(**trigger)
    query = writer.start()
    if _in_notebook():
        _Live(frame.sparkSession, name, query)
    else:
        print(f"stream {name} is running; its rows: spark.table({name!r})")
    return query
