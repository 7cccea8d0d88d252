# What expressions do and warn of, they do once for each row, however many rows the statement has to hold.
CREATE TABLE big (id INT AUTO_INCREMENT PRIMARY KEY, a INT, s VARCHAR(10));
INSERT INTO big (a, s) VALUES (1, '1x'), (2, '2x'), (3, '3x'), (4, '4x');
INSERT INTO big (a, s) SELECT x.a, x.s FROM big x, big y, big z;
INSERT INTO big (a, s) SELECT x.a, x.s FROM big x, big y;
INSERT INTO big (a, s) SELECT x.a, x.s FROM big x, big y LIMIT 27236;
SELECT COUNT(*) FROM big;
SET @n = 0;
SELECT COUNT(@n := @n + 1) FROM big WHERE id > 0;
SELECT @n;
SET @n = 0;
SELECT COUNT(*) FROM big WHERE id > 0 AND (@n := @n + 1) > 0;
SELECT @n;
SELECT SUM(CAST(s AS SIGNED)) > 0 FROM big WHERE id > 0;
SHOW COUNT(*) WARNINGS;
SELECT a, SUM(CAST(s AS SIGNED)) > 0 FROM big WHERE id > 0 GROUP BY a ORDER BY a;
SHOW COUNT(*) WARNINGS;
DROP TABLE big;
