# Expressions of generated columns, as they are shown.
SET NAMES utf8mb4;
CREATE TABLE g (a INT, b INT, s VARCHAR(20), d DATETIME, j JSON, c1 INT AS (a+b), c2 INT GENERATED ALWAYS AS (a * 2 + b) STORED NOT NULL, c3 VARCHAR(50) AS (CONCAT(s, '-', upper(s))), c4 INT AS (IF(a > 1, a, -b)) VIRTUAL COMMENT 'x', c5 INT AS (CASE a WHEN 1 THEN 2 ELSE 3 END), c6 VARCHAR(20) AS (s COLLATE utf8mb4_bin), c7 INT AS (LENGTH(TRIM(s)) % 3), c8 INT AS (a IS NULL OR b IN (1,2)), c9 INT AS (NOT a), c10 VARCHAR(40) AS (j->>'$.a'), c11 JSON AS (j->'$.b'), c12 DATE AS (d + INTERVAL 1 DAY), c13 INT AS (YEAR(d)), c14 VARCHAR(10) AS (CAST(a AS CHAR(10))), c15 VARCHAR(10) AS (_utf8mb4'x'), c16 INT AS (a BETWEEN 1 AND 2), c17 INT AS (s LIKE 'a%'), c18 DECIMAL(10,2) AS (a / 3), c19 VARCHAR(9) AS (x'41'), c20 INT AS (COALESCE(`a`,0)), c21 VARCHAR(20) AS (DATE_FORMAT(d, '%Y')));
SELECT column_name, generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'g' AND generation_expression <> '' ORDER BY ordinal_position;
CREATE TABLE h (a INT, b INT, s VARCHAR(20), c24 DOUBLE AS (1.5e0 * a), c25 INT AS (a XOR b), c26 INT AS (a DIV b), c27 VARCHAR(30) AS (SUBSTRING(s FROM 2 FOR 3)), c28 BIGINT UNSIGNED AS (~a), c29 INT AS (a <=> b), c30 INT AS (a && b || s), c32 TINYINT AS (TRUE), c33 INT AS (ROUND(a)), c34 INT AS (a IN (1)), c35 INT AS (a NOT IN (1, 2)), c36 INT AS (s NOT LIKE 'y'), c37 INT AS (a = 1 AND b = 2 AND s > 'x'), c38 VARCHAR(20) AS (REPLACE(s, 'it''s', "a\\b")), c39 VARCHAR(20) AS (LCASE(s)), c40 VARCHAR(20) AS ('a' 'b'));
SELECT column_name, generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'h' AND generation_expression <> '' ORDER BY ordinal_position;
INSERT INTO h (a, b, s) VALUES (3, 2, 'it''s me');
SELECT * FROM h;
INSERT INTO g (a, b, s, d, j) VALUES (3, 2, 'abc', '2020-02-03 04:05:06', '{"a": "x", "b": [1]}');
SELECT * FROM g;
CREATE TABLE k LIKE h;
ALTER TABLE k DROP c24, MODIFY c25 INT AS (a XOR  s), ADD z INT AS (b*2) AFTER a;
SELECT column_name, generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'k' AND generation_expression <> '' ORDER BY ordinal_position;
SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT';
CREATE TABLE m ("a" INT, b VARCHAR(10) AS ("a" || 'x'));
SET sql_mode = DEFAULT;
SELECT column_name, generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'm' AND generation_expression <> '' ORDER BY ordinal_position;
