# Indexes that have all columns that a query asks for.

CREATE TABLE t (
  id INT PRIMARY KEY,
  i TINYINT, u BIGINT UNSIGNED NOT NULL, c DECIMAL(12,3), f FLOAT, d DOUBLE,
  dt DATE, dm DATETIME(3), ti TIME(2), ts TIMESTAMP NULL, y YEAR, bi BIT(9),
  e ENUM('red', 'green', 'blue'), s SET('a', 'b', 'c'), vb VARBINARY(10), b BINARY(4), vc VARCHAR(10), bin VARCHAR(10) COLLATE utf8mb4_bin, txt TEXT,
  KEY i (i), KEY u (u DESC, i), KEY c (c, i DESC), KEY f (f), KEY d (d, i), KEY dt (dt), KEY dm (dm), KEY ti (ti), KEY ts (ts), KEY y (y, bi), KEY e (e, s), KEY vb (vb), KEY b (b),
  KEY vc (vc), KEY bin (bin), KEY txt (txt(3)), UNIQUE KEY uu (u, vb)
) CHARACTER SET utf8mb4;
SET time_zone = '+00:00';
INSERT INTO t VALUES
  (1, -128, 18446744073709551615, -999999999.999, -0.0, -0e0, '0001-01-01', '2024-02-29 23:59:59.999', '-838:59:59', '1970-01-01 00:00:01', 0, b'0', 'blue', 'a,c', X'0001', 'a', 'Abc', 'Abc', 'Abcdef'),
  (2, -1, 0, -0.001, 0, 0, '9999-12-31', '1000-01-01 00:00:00.001', '838:59:59', '2038-01-19 03:14:07', 1901, b'111111111', 'red', '', '', '', 'abc', 'abc', 'abcdxx'),
  (3, 0, 9223372036854775808, 0, 1.5, 1.5, NULL, NULL, '-10:00:00.01', NULL, 2155, NULL, NULL, NULL, NULL, NULL, 'ABC ', 'abc ', NULL),
  (4, NULL, 7, NULL, -1.5, -1.5e300, '2024-02-29', '2024-02-29', '00:00:00.01', '2024-07-01 10:20:30', 2024, b'101', 'green', 'a,b,c', X'FF00FF', 'abcd', 'é', 'é', 'é'),
  (5, 127, 7, 999999999.999, NULL, NULL, '2024-03-01', '2024-03-01 00:00:00.5', '12:34:56.78', '2024-01-01', NULL, b'1', 'blue', 'b', 'abc ', X'00FF', '', '', ''),
  (6, 0, 8, 0.5, 0, -0e0, '2024-03-01', NULL, NULL, NULL, 1999, b'10', 'red', 'c', 'abc', 'abc', 'e', 'e', 'abz');

SELECT id, i FROM t WHERE i >= -128 ORDER BY id;
SELECT id, i FROM t WHERE i IS NULL OR i < 0 ORDER BY id;
SELECT id, u, i FROM t WHERE u > 6 ORDER BY id;
SELECT id, u, vb FROM t WHERE u = 7 ORDER BY id;
SELECT id, c, i FROM t WHERE c > -1 ORDER BY id;
SELECT id, c FROM t WHERE c IS NULL;
SELECT id, f FROM t WHERE f <= 1.5 ORDER BY id;
SELECT id, d, i FROM t WHERE d = 0 ORDER BY id;
SELECT id, dt FROM t WHERE dt >= '0001-01-01' ORDER BY id;
SELECT id, dm FROM t WHERE dm < '2024-03-02' ORDER BY id;
SELECT id, ti FROM t WHERE ti > '-100:00:00' ORDER BY id;
SELECT id, ts FROM t WHERE ts > '1970-01-01 00:00:00' ORDER BY id;
SET time_zone = '+05:30';
SELECT id, ts FROM t WHERE ts > '1970-01-02 00:00:00' ORDER BY id;
SELECT id, ts FROM t WHERE ts = '2024-07-01 15:50:30';
SET time_zone = '+00:00';
SELECT id, y, bi + 0 FROM t WHERE y >= 0 ORDER BY id;
SELECT id, e, e + 0, s, s + 0 FROM t WHERE e = 'blue' ORDER BY id;
SELECT id, e, s FROM t WHERE e = 'red' ORDER BY id;
SELECT id, HEX(vb) FROM t WHERE vb >= '' ORDER BY id;
SELECT id, HEX(b) FROM t WHERE b > '' ORDER BY id;
SELECT id, vc, LENGTH(vc) FROM t WHERE vc = 'abc' ORDER BY id;
SELECT COUNT(*), COUNT(id) FROM t WHERE vc = 'abc';
SELECT id FROM t WHERE vc = 'E' ORDER BY id;
SELECT id, bin, LENGTH(bin) FROM t WHERE bin >= 'abc' ORDER BY id;
SELECT id FROM t WHERE txt LIKE 'abc%' ORDER BY id;
SELECT id, txt FROM t WHERE txt > 'abc' ORDER BY id;
SELECT id, u FROM t WHERE u = 7 AND vb = X'FF00FF';
SELECT id FROM t WHERE u = 7 AND vb = 'abc ';

# In the order of an index.
SELECT i, id FROM t ORDER BY i LIMIT 3;
SELECT i, id FROM t ORDER BY i DESC, id DESC LIMIT 3;
SELECT u, i FROM t ORDER BY u DESC LIMIT 2;
SELECT dt FROM t WHERE dt = '2024-03-01' ORDER BY dt DESC;
SELECT MIN(i), MAX(i), MIN(c), MAX(c), MIN(dt), MAX(ti) FROM t;
SELECT COUNT(*) FROM t;
SELECT COUNT(i), SUM(i), COUNT(DISTINCT i), AVG(i) FROM t;
SELECT i, COUNT(*) FROM t GROUP BY i ORDER BY i;

# Joined.
CREATE TABLE n (x INT, w VARCHAR(10));
INSERT INTO n VALUES (7, 'abc'), (8, 'E'), (0, ''), (NULL, NULL), (7, 'x');
SELECT n.x, n.w, t.id, t.i FROM n JOIN t ON t.u = n.x ORDER BY 1, 2, 3;
SELECT n.w, t.id FROM n LEFT JOIN t ON t.vc = n.w ORDER BY 1, 2;
SELECT n.x, (SELECT COUNT(*) FROM t WHERE t.u = n.x AND t.i IS NOT NULL) k FROM n ORDER BY 1, 2, n.w;
SELECT x FROM n WHERE EXISTS (SELECT 1 FROM t WHERE t.u = n.x) ORDER BY 1;

# Changed and not committed yet.
START TRANSACTION;
UPDATE t SET i = 5, vc = UPPER(vc), d = 0 WHERE id IN (1, 6);
DELETE FROM t WHERE id = 2;
INSERT INTO t (id, u, i) VALUES (9, 7, 5);
SELECT id, i FROM t WHERE i = 5 ORDER BY id;
SELECT id, d FROM t WHERE d = 0 ORDER BY id;
SELECT id, vc FROM t WHERE vc = 'abc' ORDER BY id;
SELECT COUNT(*), SUM(i), MAX(i) FROM t;
SAVEPOINT a;
UPDATE t SET i = 6 WHERE i = 5;
SELECT id, i FROM t WHERE i > 4 ORDER BY id;
ROLLBACK TO a;
SELECT id, i FROM t WHERE i > 4 ORDER BY id;
ROLLBACK;
SELECT id, i FROM t WHERE i > -200 ORDER BY id;
SELECT COUNT(*), SUM(i), MAX(i) FROM t;
SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SELECT id, i FROM t WHERE i < 0 ORDER BY id;
SELECT i, id FROM t WHERE i = 0 ORDER BY id FOR UPDATE;
SELECT i FROM t WHERE i = 0 LOCK IN SHARE MODE;
DROP TABLE t, n;
