"""Failing rows behind guards: random queries, compared with an evaluator that goes row by row in Spark's order.

A query must fail where a value of its result fails, and must not fail where no row that reaches the failing expression
has a bad value. Where the answer hangs on how much an optimizer leaves out or moves around, both are right; rows must
always be the right ones.
"""

import random

import pytest
from pyspark.errors import PySparkException

ROWS = [
    (0, 1, 0, "7"), (1, 0, 2, "x"), (2, None, 1, None), (3, 5, None, "3"), (4, 0, 0, ""), (5, -4, 3, "12"),
    (6, 7, -1, "z"), (7, None, None, "0"), (8, 2, 2, "-5"), (9, 9, 0, "1.5"),
]
OTHER = [(0, 10), (1, 0), (3, None), (4, 4), (4, 0), (8, 3)]


class Bad(Exception):
    """The evaluation of a row fails."""


class Unsure(Exception):
    """It fails or not, as the optimizer likes."""


class Lazy:
    """A column's value, computed when it is asked for."""

    def __init__(self, compute):
        self.compute = compute
        self.done = None

    def get(self):
        if self.done is None:
            try:
                self.done = ("value", self.compute())
            except (Bad, Unsure) as error:
                self.done = ("error", error)
        if self.done[0] == "error":
            raise self.done[1]
        return self.done[1]


class Expression:
    def __init__(self, sql, evaluate):
        self.sql = sql
        self.evaluate = evaluate  # (row, eager) -> value


def both(left, right, row, eager, combine):
    """NULL on the left spares the right side in Spark's code; evaluating it all the same is allowed."""
    x = left.evaluate(row, eager)
    if x is None:
        try:
            right.evaluate(row, eager)
        except Bad:
            raise Bad() if eager else Unsure()
        return None
    y = right.evaluate(row, eager)
    return None if y is None else combine(x, y)


def divided(x, y):
    if y == 0:
        raise Bad()
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def remainder(x, y):
    return x - y * divided(x, y)


def division(left, right, row, eager, combine):
    y = right.evaluate(row, eager)
    if y is None:
        try:
            left.evaluate(row, eager)
        except Bad:
            raise Bad() if eager else Unsure()
        return None
    x = left.evaluate(row, eager)
    if x is None:
        if y == 0 and eager:
            raise Bad()
        return None
    return combine(x, y)


def number_of(text):
    if text is None:
        return None
    try:
        return int(text.strip())
    except ValueError:
        raise Bad()


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.next = 0

    def column(self, name):
        return Expression(name, lambda row, eager: row[name].get())

    def number(self, columns, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.2:
            if self.random.random() < 0.75:
                return self.column(self.random.choice([c for c in columns if c != "s"]))
            value = self.random.choice([0, 1, 2, 3, -1])
            return Expression(str(value) if value >= 0 else "(%d)" % value, lambda row, eager: value)
        if pick < 0.5:
            operator, combine = self.random.choice([("div", divided), ("%", remainder)])
            left, right = self.number(columns, depth - 1), self.number(columns, depth - 1)
            return Expression(
                "(%s %s %s)" % (left.sql, operator, right.sql),
                lambda row, eager: division(left, right, row, eager, combine),
            )
        if pick < 0.6 and "s" in columns:
            return Expression("CAST(s AS INT)", lambda row, eager: number_of(row["s"].get()))
        if pick < 0.7:
            left, right = self.number(columns, depth - 1), self.number(columns, depth - 1)
            return Expression(
                "(%s + %s)" % (left.sql, right.sql),
                lambda row, eager: both(left, right, row, eager, lambda x, y: x + y),
            )
        if pick < 0.9:
            test = self.test(columns, depth - 1)
            yes, no = self.number(columns, depth - 1), self.number(columns, depth - 1)
            form = self.random.choice(["CASE WHEN %s THEN %s ELSE %s END", "if(%s, %s, %s)"])
            return Expression(
                form % (test.sql, yes.sql, no.sql),
                lambda row, eager: (yes if test.evaluate(row, eager) else no).evaluate(row, eager),
            )
        first, second = self.number(columns, depth - 1), self.number(columns, depth - 1)

        def coalesce(row, eager):
            value = first.evaluate(row, eager)
            return second.evaluate(row, eager) if value is None else value

        return Expression("coalesce(%s, %s)" % (first.sql, second.sql), coalesce)

    def test(self, columns, depth):
        pick = self.random.random()
        if depth > 0 and pick < 0.55:
            left, right = self.test(columns, depth - 1), self.test(columns, depth - 1)
            word, stop = self.random.choice([("AND", False), ("OR", True)])

            def connect(row, eager):
                x = left.evaluate(row, eager)
                if x is stop:
                    return stop
                try:
                    y = right.evaluate(row, eager)
                except Bad:
                    # A filter drops the row at the first conjunct that is NULL.
                    raise Unsure() if x is None and not eager else Bad()
                if y is stop:
                    return stop
                return None if x is None or y is None else not stop

            return Expression("(%s %s %s)" % (left.sql, word, right.sql), connect)
        if depth > 0 and pick < 0.65:
            inner = self.test(columns, depth - 1)

            def negate(row, eager):
                value = inner.evaluate(row, eager)
                return None if value is None else not value

            return Expression("(NOT %s)" % inner.sql, negate)
        left = self.number(columns, max(depth - 1, 0))
        if pick < 0.75:
            word = self.random.choice(["IS NULL", "IS NOT NULL"])
            return Expression(
                "(%s %s)" % (left.sql, word),
                lambda row, eager: (left.evaluate(row, eager) is None) == (word == "IS NULL"),
            )
        word, compare = self.random.choice(
            [("=", lambda x, y: x == y), ("<>", lambda x, y: x != y), (">", lambda x, y: x > y),
             ("<=", lambda x, y: x <= y)]
        )
        right = self.number(columns, 0)
        return Expression(
            "(%s %s %s)" % (left.sql, word, right.sql),
            lambda row, eager: both(left, right, row, eager, compare),
        )

    def name(self):
        self.next += 1
        return "c%d" % self.next

    def query(self):
        """SQL, columns, and a function (eager) -> rows as dictionaries of Lazy."""
        sql = "SELECT id, a, b, s FROM guard_t"
        columns = ["id", "a", "b", "s"]

        def source(eager):
            return [{c: Lazy(lambda v=v: v) for c, v in zip(("id", "a", "b", "s"), row)} for row in ROWS]

        run = source
        grouped = False
        for _ in range(self.random.randint(1, 5)):
            kind = self.random.choice(["filter", "filter", "project", "project", "join", "aggregate", "sort"])
            if kind == "filter":
                sql, run = self.filter(sql, columns, run)
            elif kind == "project":
                sql, columns, run = self.project(sql, columns, run)
            elif kind == "join" and "id" in columns and "w" not in columns:
                sql, columns, run = self.join(sql, columns, run)
            elif kind == "aggregate" and not grouped:
                grouped = True
                sql, columns, run = self.aggregate(sql, columns, run)
                run = forced(run)
            elif kind == "sort":
                sql = "SELECT * FROM (%s) ORDER BY %s" % (sql, self.random.choice(columns))
                run = forced(run)
        kept = self.random.sample(columns, self.random.randint(1, len(columns)))
        return "SELECT %s FROM (%s)" % (", ".join(kept), sql), kept, run

    def filter(self, sql, columns, run):
        test = self.test(columns, 2)
        return (
            "SELECT * FROM (%s) WHERE %s" % (sql, test.sql),
            lambda eager: [row for row in run(eager) if passes(test, row, eager)],
        )

    def project(self, sql, columns, run):
        name = self.name()
        value = self.number(columns, 2)

        def computed(eager):
            return [dict(row, **{name: Lazy(lambda row=row: value.evaluate(row, eager))}) for row in run(eager)]

        return "SELECT *, %s AS %s FROM (%s)" % (value.sql, name, sql), columns + [name], computed

    def join(self, sql, columns, run):
        outer = self.random.random() < 0.5
        test = self.test(columns + ["w"], 1) if self.random.random() < 0.5 else None

        def joined(eager):
            rows = []
            for row in forced(run)(eager):
                mine = []
                for key, w in OTHER:
                    pair = dict(row, w=Lazy(lambda w=w: w))
                    # Parts of the condition may be applied to one side alone, before the join.
                    matches = row["id"].get() == key
                    if eager and test is not None:
                        test.evaluate(pair, eager)
                    if matches and (test is None or passes(test, pair, eager)):
                        mine.append(pair)
                alone = [dict(row, w=Lazy(lambda: None))]
                if eager:
                    # Filters above may be applied to one side before the join: more rows must pass without failing.
                    mine = alone + mine + [dict(row, w=Lazy(lambda w=w: w)) for _, w in OTHER]
                rows += mine or (alone if outer else [])
            return rows

        names = ", ".join("l." + c for c in columns)
        inner = "SELECT %s, r.w FROM (%s) l %s (SELECT id AS rid, w FROM guard_u) r ON l.id = r.rid" % (
            names, sql, "LEFT JOIN" if outer else "JOIN")
        if test is not None:
            inner += " AND " + test.sql
        return inner, columns + ["w"], joined

    def aggregate(self, sql, columns, run):
        value = self.number(columns, 2)
        test = self.test(columns, 1) if self.random.random() < 0.6 else None
        suffix = "" if test is None else " FILTER (WHERE %s)" % test.sql
        key = self.random.choice([c for c in columns if c != "s"])

        def grouped(eager):
            groups = {}
            for row in forced(run)(eager):
                groups.setdefault(row[key].get(), []).append(row)

            def known(rows):
                kept = [row for row in rows if test is None or passes(test, row, eager)]
                return [v for v in [value.evaluate(row, eager) for row in kept] if v is not None]

            return [
                {
                    "k": Lazy(lambda k=k: k),
                    "t": Lazy(lambda rows=rows: sum(known(rows)) if known(rows) else None),
                    "n": Lazy(lambda rows=rows: len(known(rows))),
                }
                for k, rows in groups.items()
            ]

        return (
            "SELECT %s AS k, sum(%s)%s AS t, count(%s)%s AS n FROM (%s) GROUP BY %s"
            % (key, value.sql, suffix, value.sql, suffix, sql, key),
            ["k", "t", "n"],
            grouped,
        )


def passes(test, row, eager):
    """Whether a filter that fails is needed at all is for the optimizer to say."""
    try:
        return test.evaluate(row, eager)
    except Bad:
        raise Bad() if eager else Unsure()


def forced(run):
    """All columns of the rows are computed here, as far as it concerns what may fail."""

    def computed(eager):
        rows = run(eager)
        if eager:
            for row in rows:
                for value in row.values():
                    value.get()
        return rows

    return computed


def outcome(run, kept, eager):
    try:
        return "rows", [tuple(row[c].get() for c in kept) for row in run(eager)]
    except Bad:
        return "fails", None
    except Unsure:
        return "unsure", None


def in_order(rows):
    return sorted(rows, key=lambda row: [(v is None, str(v)) for v in row])


@pytest.mark.parametrize("round", range(12))
def test_failures_are_those_of_rows_that_count(round, spark):
    check_round(spark, round * 1000, 60)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM guard_t WHERE 1 div b > 0",
        "SELECT id FROM guard_t WHERE id >= 0 AND 1 div b > 0",
        "SELECT id FROM guard_t WHERE a > 100 OR CAST(s AS INT) > 5",
        "SELECT sum(CAST(s AS INT)) FROM guard_t",
        "SELECT sum(1 div b) FILTER (WHERE id < 2) FROM guard_t",
        "SELECT l.id FROM guard_t l JOIN guard_u r ON l.id = r.id AND 10 div r.w > 0",
        "SELECT id FROM guard_t ORDER BY 1 div b",
        "SELECT 1 div b, count(*) FROM guard_t GROUP BY 1 div b",
    ],
)
def test_failures_of_filters_keys_and_aggregates(sql, spark):
    make_tables(spark)
    with pytest.raises(PySparkException) as failure:
        spark.sql(sql).collect()
    assert failure.value.getCondition() in ("DIVIDE_BY_ZERO", "CAST_INVALID_INPUT")


def make_tables(spark):
    spark.createDataFrame(ROWS, "id INT, a INT, b INT, s STRING").createOrReplaceTempView("guard_t")
    spark.createDataFrame(OTHER, "id INT, w INT").createOrReplaceTempView("guard_u")


def check_round(spark, first_seed, count):
    make_tables(spark)
    outcomes = {"rows": 0, "fails": 0, "unsure": 0}
    wrong = []
    for seed in range(first_seed, first_seed + count):
        sql, kept, run = Maker(seed).query()
        lazy, expected = outcome(run, kept, False)
        eager, _ = outcome(run, kept, True)
        outcomes[lazy] += 1
        try:
            got = [tuple(row) for row in spark.sql(sql).collect()]
        except PySparkException as error:
            if error.getCondition() not in ("DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "CAST_INVALID_INPUT"):
                wrong.append("seed %d: %s\n%s" % (seed, error, sql))
            elif lazy == "rows" and eager == "rows":
                wrong.append("seed %d fails but must not: %s\n%s" % (seed, error.getCondition(), sql))
            continue
        if lazy == "fails":
            wrong.append("seed %d must fail\n%s" % (seed, sql))
        elif lazy == "rows" and in_order(got) != in_order(expected):
            wrong.append("seed %d: %s instead of %s\n%s" % (seed, in_order(got), in_order(expected), sql))
    assert not wrong, "\n".join(wrong[:5]) + "\n%d of %d" % (len(wrong), count)
    assert outcomes["rows"] > 0 and outcomes["fails"] > 0
