# Text that is computed is a moment beside a date, whatever it says; a literal that is none is text.
CREATE TABLE dd (id INT PRIMARY KEY, d DATE, dm DATETIME(2), tm TIME, s VARCHAR(30));
INSERT INTO dd VALUES (1, '2020-01-02', '2020-01-02 10:11:12.5', '10:11:12', '2020-01-02'), (2, '1999-12-31', '1999-12-31 00:00:00', '00:00:00', 'abc'), (3, NULL, NULL, NULL, NULL), (4, '2001-02-03', '2001-02-03 04:05:06', '-04:05:06', '20010203');
SELECT id, d = CONCAT('b'), d > CONCAT('b'), d < CONCAT('b'), d <> CONCAT('b'), d <=> CONCAT('b'), CONCAT('b') < d, dm = CONCAT('b'), dm > CONCAT('b'), d = UPPER('x'), d > UPPER('x') FROM dd ORDER BY id;
SELECT id, d = CONCAT('2020-01-02'), d = CONCAT('2020-01','-02'), d > CONCAT('2020-01','-02x'), d = CONCAT('20200102'), dm = CONCAT('2020-01-02 10:11:12.5'), d = CONCAT('2020-01-02 10:00:00') FROM dd ORDER BY id;
SELECT id, d = CONCAT(s), d = CONCAT(s,'x'), d > CONCAT('b',s), d = s, d > s, s > d, dm >= s FROM dd ORDER BY id;
SELECT id, d = IF(id>0,'b','c'), d > IF(id>0,'b','c'), d = 'b', d > 'b', d = IFNULL(NULL,'b'), d > IFNULL(NULL,'b'), d > (SELECT 'b'), d = LEFT('bcd',1), d > TRIM('b '), d > REPEAT('b',2) FROM dd ORDER BY id;
SELECT id FROM dd WHERE d > CONCAT('b') ORDER BY id;
SELECT id FROM dd WHERE d = CONCAT('b') ORDER BY id;
SELECT id FROM dd WHERE d < CONCAT('b') ORDER BY id;
SELECT id FROM dd WHERE d >= CONCAT('2020-01','-02') ORDER BY id;
SELECT id FROM dd WHERE d BETWEEN CONCAT('a') AND CONCAT('b') ORDER BY id;
SELECT id FROM dd WHERE d IN (CONCAT('b'), CONCAT('2020-01-02')) ORDER BY id;
SELECT id FROM dd WHERE d IN (CONCAT('b')) ORDER BY id;
SELECT d + INTERVAL 1 DAY = CONCAT('b'), DATE(dm) > CONCAT('b'), DATE(dm) > 'b', DATE'2020-01-01' > CONCAT('b'), DATE'2020-01-01' > 'b', TIMESTAMP'2020-01-01 00:00:00' = CONCAT('b') FROM dd WHERE id = 1;
SET @b = 'b', @d = '2020-01-02';
SELECT d > IF(1,'b','c'), d > CAST('b' AS CHAR), d > @b, d > _utf8mb4'b', d > ('b'), d > (SELECT CONCAT('b')), d > (SELECT 'b'), d > 'a' 'b', d > N'b', d > CONVERT('b' USING utf8mb4), d = @d, d > x'62', d > BINARY 'b', d > NULLIF('b','c'), d > ELT(1,'b'), d > CASE WHEN 1 THEN 'b' END, d > COALESCE('b'), d > LOWER('B'), d > DATE_FORMAT('2020-01-01','%M') FROM dd WHERE id=1;
SELECT dm > IF(1,'b','c'), dm > CAST('b' AS CHAR), dm > @b, DATE(dm) > @b, DATE(dm) > IF(1,'b','c'), d > DATE_FORMAT('2019-01-01','%Y-%m-%d'), 'b' < d, @b < d, CONCAT('b') <= d FROM dd WHERE id=1;
