# What is asked behind a NULL: nothing where a condition only has to be true. In strict DML what it would warn of is an error.
CREATE TABLE t (id INT PRIMARY KEY, d DATE, i INT, v VARCHAR(10), f INT);
INSERT INTO t VALUES (1, NULL, NULL, 'ship', 0), (2, '2012-02-28', 5, '7', 0), (3, NULL, 3, '7x', 0), (4, '2012-03-01', NULL, 'x', 0);
UPDATE t SET f = f + 1 WHERE d = '2012-02-29' AND v = 7;
UPDATE t SET f = f + 1 WHERE i = 5 AND v = 7;
UPDATE t SET f = f + 1 WHERE (d = '2012-02-29' AND v = 7) OR (i = 500 AND v = 8);
UPDATE t SET f = f + 1 WHERE NOT (d <> '2012-02-29' OR v <> 7);
UPDATE t SET f = f + 1 WHERE NOT (NOT (d = '2012-02-29' AND v = 7));
UPDATE t SET f = f + 1 WHERE i + 1 = 9 AND d < '2013-01-01' AND v + 0 = 12;
UPDATE t SET f = f + 1 WHERE NULL AND v = 7;
UPDATE t SET f = f + 1 WHERE d = '2012-02-29' XOR v = 7;
UPDATE t SET f = f + 1 WHERE (d = '2012-02-29' AND v = 7) IS TRUE;
UPDATE t SET f = f + 1 WHERE (d = '2012-02-29' AND v = 7) = 1;
UPDATE t SET f = f + 1 WHERE CASE WHEN d = '2012-02-29' AND v = 7 THEN 1 ELSE 0 END;
UPDATE t SET f = f + 1 WHERE i = 3 AND v = 7;
DELETE FROM t WHERE d = '2012-02-29' AND (v = 7 OR i = 3);
DELETE FROM t WHERE d IS NULL AND i = 4 AND v = 7;
INSERT INTO t SELECT id + 10, d, i, v, f FROM t WHERE d = '2012-02-29' AND v = 7;
SELECT * FROM t;
