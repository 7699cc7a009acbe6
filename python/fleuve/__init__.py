"""Fleuve in Python: a session on a local engine, and tables and running streams shown in a notebook.

    import fleuve
    spark = fleuve.session()
    fleuve.display(spark.range(3))

In IPython and Jupyter, `%load_ext fleuve` defines `spark`, `display` and the `%%sql` magic.
"""

from fleuve.display import display
from fleuve.server import session

__all__ = ["display", "session", "load_ipython_extension"]


def load_ipython_extension(shell):
    """What `%load_ext fleuve` calls."""
    from fleuve.magic import SqlMagic

    spark = session()
    shell.push({"spark": spark, "display": display})
    shell.register_magics(SqlMagic(shell, spark))
