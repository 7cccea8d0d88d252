# What a session has done to come to its rows has MySQL's names.
FLUSH STATUS;
SHOW SESSION STATUS LIKE 'Handler\_read%';
SHOW SESSION STATUS LIKE 'Select\_%';
SHOW SESSION STATUS LIKE 'Sort\_%';
SHOW SESSION STATUS WHERE Variable_name IN ('Created_tmp_tables', 'Created_tmp_disk_tables', 'Handler_write', 'Handler_update', 'Handler_delete', 'Handler_savepoint', 'Handler_savepoint_rollback');
CREATE DATABASE status_names;
USE status_names;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
FLUSH STATUS;
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
SHOW SESSION STATUS WHERE Variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete', 'Handler_read_rnd_next');
DROP DATABASE status_names;
# What replicas do about types.
SELECT @@slave_type_conversions;
SET GLOBAL slave_type_conversions = 'all_non_lossy,ALL_LOSSY';
SELECT @@slave_type_conversions;
SET GLOBAL slave_type_conversions = 12;
SELECT @@slave_type_conversions;
SET GLOBAL slave_type_conversions = 16;
SET GLOBAL slave_type_conversions = 'ALL_LOSSY,SOME';
SET GLOBAL slave_type_conversions = NULL;
SET GLOBAL slave_type_conversions = 1.5;
SET SESSION slave_type_conversions = 'ALL_LOSSY';
SET GLOBAL slave_type_conversions = '';
SELECT @@slave_type_conversions;
SET GLOBAL slave_type_conversions = DEFAULT;
