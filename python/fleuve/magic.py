"""The `%sql` and `%%sql` magics: a statement, its rows shown as display() does."""

from IPython.core.magic import Magics, line_cell_magic, magics_class

from fleuve.display import display


@magics_class
class SqlMagic(Magics):
    def __init__(self, shell, spark):
        super().__init__(shell)
        self._spark = spark

    @line_cell_magic
    def sql(self, line, cell=None):
        """%sql STATEMENT, or %%sql [NAME] above a statement: NAME then holds the frame."""
        statement = line if cell is None else cell
        frame = self._spark.sql(statement)
        if cell is not None and line.strip():
            self.shell.push({line.strip(): frame})
        if frame.columns:
            display(frame)
