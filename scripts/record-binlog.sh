#!/usr/bin/env bash
# Records crates/binlog/testdata from MySQL 8.0.12 (Python needs pymysql).
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
start_mysql 23807 --server-id=7 --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency --binlog-row-metadata=FULL
python3 crates/binlog/tools/record.py 23807 "$WORK/mysql-23807"
ls -l crates/binlog/testdata
