# A negated or absolute number with a fixed number of digits after the point keeps them.
CREATE TABLE f (id INT PRIMARY KEY, d52 DOUBLE(9,2), g FLOAT(9,2), d DOUBLE);
INSERT INTO f VALUES (1, -5, 1.5, 1), (2, 617.28, 0.125, 3.5), (3, NULL, NULL, NULL);
SELECT id, -d52, ABS(d52), -g, ABS(g), -ROUND(d, 2), -(-d52), ABS(-d52), -d, ABS(d) FROM f ORDER BY id;
SELECT id FROM f WHERE -d52 = 5 OR ABS(d52) > 600 ORDER BY id;
CREATE TABLE q AS SELECT id, -d52 a, ABS(d52) b, -g c, ABS(g) e, -ROUND(d, 2) h, -d i FROM f;
SHOW CREATE TABLE q;
SELECT * FROM q ORDER BY id;
