#!/usr/bin/env bash
# Other programs read a binary log that crates/binlog wrote, with every column type: MariaDB's mariadb-binlog prints its rows, and a MySQL
# 8.0.12 replica applies it and ends with the tables of a server that ran the statements (Python needs pymysql).
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
cargo build --release -p highkey-binlog --example sample
sample=$BIN/examples/sample

read -r gtids expected < <("$sample" "$WORK/mariadb.bin" mariadb)
mariadb-binlog --no-defaults --verify-binlog-checksum -v "$WORK/mariadb.bin" >"$WORK/mariadb.txt"
rows=$(grep -ac '^### \(INSERT INTO\|UPDATE\|DELETE FROM\) ' "$WORK/mariadb.txt")
[ "$rows" = "$expected" ] || { echo "mariadb-binlog printed $rows of $expected changes"; exit 1; }
echo "mariadb-binlog printed all $rows changes"

read -r gtids expected < <("$sample" "$WORK/mysql.bin")
start_mysql 23808
start_mysql 23809 --server-id=9 --log-bin=binlog --relay-log=relay --gtid-mode=ON --enforce-gtid-consistency --log-slave-updates
python3 crates/binlog/tools/replay.py 23808 23809 "$WORK/mysql-23809" "$WORK/mysql.bin" "$gtids"
