# Dates against constants with COLLATE or of type BINARY: what is no date is the zero date, where a bare literal is text.
SET sql_mode='';
CREATE TABLE t (id INT PRIMARY KEY, d DATE, d6 DATETIME(6), ts TIMESTAMP NULL, KEY (d), KEY (d6));
INSERT INTO t VALUES (1,'2020-01-02','2020-01-02 10:11:12.123456','2020-01-02 10:11:12'),(2,'0000-00-00','0000-00-00','0000-00-00'),(3,NULL,NULL,NULL);
SELECT id, d6 < 'B' COLLATE utf8mb4_bin, d > 'b' COLLATE utf8mb4_bin, 'b' COLLATE utf8mb4_bin < ts, d <> 'b' COLLATE utf8mb4_bin, d = '' COLLATE utf8mb4_bin, d <=> 'x' COLLATE utf8mb4_bin FROM t ORDER BY id;
SELECT id FROM t WHERE d > 'b' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE d6 <= 'b' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE d = 'b' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE d < '2020-02-01' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE d6 = '2020-01-02 10:11:12.123456' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE d >= '2020-01-02x' COLLATE utf8mb4_bin ORDER BY id;
SELECT DATE'2020-01-02' < 'b' COLLATE utf8mb4_bin, 'b' COLLATE utf8mb4_bin < TIMESTAMP'2020-01-02 00:00:00';
SELECT id, d < 'b', d6 > 'b', d < '2020-01-03x' FROM t ORDER BY id;
SELECT id, d < CAST('b' AS BINARY), d > BINARY 'b', d6 <> CAST('b' AS BINARY), d < x'62' FROM t ORDER BY id;
