-- Permanent views over temporary ones, and statements that Delta tables do not take.
-- oracle: spark
CREATE OR REPLACE TEMP VIEW conf_tv AS SELECT 1 AS a;
CREATE VIEW conf_v AS SELECT * FROM conf_tv;
CREATE VIEW conf_v AS SELECT * FROM (SELECT a FROM conf_tv WHERE a IN (SELECT a FROM conf_tv));
CREATE TABLE conf_p (a INT, p STRING) USING DELTA PARTITIONED BY (p);
CREATE VIEW conf_v AS SELECT a FROM conf_p;
CREATE OR REPLACE TEMP VIEW conf_tv2 AS SELECT * FROM conf_v;
SELECT count(*) AS n FROM conf_tv2;
SHOW PARTITIONS conf_p;
ANALYZE TABLE conf_p COMPUTE STATISTICS;
DROP VIEW conf_v;
DROP TABLE conf_p;
