-- ALTER TABLE REPLACE COLUMNS: order, comments and new columns; what would lose a column or change a type is refused.
CREATE TABLE t (id INT, v STRING, d DATE, s STRUCT<a: INT, b: INT>) USING delta;
INSERT INTO t VALUES (1, 'a', DATE'2024-01-01', named_struct('a', 1, 'b', 2));
ALTER TABLE t REPLACE COLUMNS (id INT, v STRING);
ALTER TABLE t REPLACE COLUMNS (id BIGINT, v STRING, d DATE, s STRUCT<a: INT, b: INT>);
ALTER TABLE t REPLACE COLUMNS (id INT COMMENT 'c', d DATE, v STRING, s STRUCT<b: INT, a: INT, c: STRING>, x INT);
SELECT * FROM t;
DESCRIBE t;
ALTER TABLE t CHANGE COLUMN v w STRING;
ALTER TABLE t ADD COLUMN z INT AFTER nosuch;
