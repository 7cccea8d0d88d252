# SET_VAR hints: a variable has another value for one statement.
CREATE TABLE a (x INT PRIMARY KEY, y INT);
SELECT /*+ SET_VAR(div_precision_increment=8) */ 1/3;
SELECT /*+ SET_VAR(div_precision_increment=8) */ 1/3;
SELECT /*+ SET_VAR(div_precision_increment=8) */ 1/3;
SELECT /*+ SET_VAR(div_precision_increment=2) */ 1/3;
SELECT 1/3;
SELECT /*+ SET_VAR(sort_buffer_size=16M) */ @@sort_buffer_size;
SELECT /*+ SET_VAR(`sort_buffer_size` = 100000) */ @@sort_buffer_size;
SELECT /*+ SET_VAR(sql_mode=ANSI_QUOTES) */ @@sql_mode, "x";
SELECT /*+ SET_VAR(sql_mode="ALLOW_INVALID_DATES") */ @@sql_mode;
SELECT /*+ SET_VAR(sql_mode=4) */ @@sql_mode;
SELECT /*+ SET_VAR(sql_safe_updates=ON) SET_VAR(max_execution_time=70000) */ @@sql_safe_updates, @@max_execution_time;
SELECT @@sql_safe_updates, @@max_execution_time;
SELECT /*+ SET_VAR(timestamp=100) SET_VAR(insert_id=77) */ UNIX_TIMESTAMP(), @@insert_id;
SELECT UNIX_TIMESTAMP() > 100, @@insert_id;
SELECT /*+ SET_VAR(sql_select_limit=1) */ 1 UNION SELECT 2;
SELECT /*+ SET_VAR(group_concat_max_len=8) */ GROUP_CONCAT(x ORDER BY x) FROM (SELECT 12345 x UNION SELECT 67890) d;
# In any query block.
SELECT @@div_precision_increment FROM (SELECT /*+ SET_VAR(div_precision_increment=9) */ 1) d;
SELECT 1 UNION SELECT /*+ SET_VAR(div_precision_increment=9) */ @@div_precision_increment;
(SELECT /*+ SET_VAR(div_precision_increment=5) */ @@div_precision_increment) UNION SELECT /*+ SET_VAR(div_precision_increment=6) */ @@div_precision_increment;
SHOW WARNINGS;
# Hints that set nothing.
SELECT /*+ SET_VAR(nosuch=3) SET_VAR(NoSuch=4) SET_VAR(PORT=3) SET_VAR(autocommit=0) */ @@autocommit;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sql_mode=ANSI) SET_VAR(SQL_mode=TRADITIONAL) SET_VAR(sql_mode='x') */ @@sql_mode;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sort_buffer_size=1) SET_VAR(sort_buffer_size=16M) */ @@sort_buffer_size;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sort_buffer_size=16k) SET_VAR(div_precision_increment=6) */ 1/3;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sql_mode='nonsense') SET_VAR(sql_safe_updates=5) SET_VAR(lock_wait_timeout='x') */ @@sql_mode LIKE '%nonsense%', @@sql_safe_updates;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sort_buffer_size=-1) SET_VAR(div_precision_increment=6) */ 1/3, 'a text that is longer than what is shown of the text behind an error in a hint';
SHOW WARNINGS;
SELECT /*+ SET_VAR(div_precision_increment=6) SET_VAR(sort_buffer_size */ 1/3;
SHOW WARNINGS;
SELECT /*+ SET_VAR(div_precision_increment=6, sort_buffer_size=7) */ 1/3;
SHOW WARNINGS;
SELECT /*+ SET_VAR(sort_buffer_size=99999999999999999999) */ 1;
SHOW WARNINGS;
# Statements that change rows.
INSERT /*+ SET_VAR(sql_mode='ALLOW_INVALID_DATES') */ INTO a VALUES (1, 'abc');
REPLACE /*+ SET_VAR(sql_mode='ALLOW_INVALID_DATES') */ INTO a VALUES (1, 'abd');
UPDATE /*+ SET_VAR(sql_mode='ALLOW_INVALID_DATES') */ a SET y = 'abc' WHERE x = 1;
INSERT INTO a SELECT /*+ SET_VAR(sql_mode='ALLOW_INVALID_DATES') */ 2, 'abc';
INSERT INTO a VALUES (3, 'abd');
SELECT * FROM a ORDER BY x;
DELETE /*+ SET_VAR(sql_safe_updates=1) */ FROM a;
DELETE /*+ SET_VAR(sql_safe_updates=0) */ FROM a;
CREATE TABLE b AS SELECT /*+ SET_VAR(div_precision_increment=8) */ 1 + 1/8 AS q;
SELECT * FROM b;
# Prepared statements.
PREPARE s FROM 'SELECT /*+ SET_VAR(port=1) SET_VAR(div_precision_increment=8) SET_VAR(div_precision_increment=9) SET_VAR(sort_buffer_size=1) */ 1/3, @@div_precision_increment, @@sort_buffer_size';
SHOW WARNINGS;
EXECUTE s;
SHOW WARNINGS;
EXECUTE s;
SELECT 1/3, @@div_precision_increment;
PREPARE s FROM 'INSERT /*+ SET_VAR(sql_mode=\'ALLOW_INVALID_DATES\') */ INTO a VALUES (?, \'abc\')';
SET @x = 5;
EXECUTE s USING @x;
SHOW WARNINGS;
INSERT INTO a VALUES (6, 'abc');
# After an error.
SELECT /*+ SET_VAR(div_precision_increment=8) */ nosuch;
SELECT 1/3;
