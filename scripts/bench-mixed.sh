#!/usr/bin/env bash
# Transactions and reports at once, Highkey beside MySQL 8.0.12: sysbench's oltp_read_write beside TPC-H's queries, then CH-benCHmark.
# Of the first also what is kept of the transactions per core that the reports leave (crates/lab/src/report_guard.rs says what that is).
# SCALE (of TPC-H), WAREHOUSES, CONNECTIONS, REPEATS, SECONDS_EACH, LIMIT (seconds a query of CH may take) and OUT change the size of the run.
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
equal=(--innodb-buffer-pool-size="${BUFFER_POOL:-2G}" --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=ON --max-connections=1000)
start_highkey 23861 "${equal[@]}"
start_mysql 23862 "${equal[@]}" --skip-log-bin --innodb-log-file-size=512M
options=(--server highkey=mysql://root@127.0.0.1:23861 --server mysql-8.0.12=mysql://root@127.0.0.1:23862 --repeats "${REPEATS:-3}"
    --seconds "${SECONDS_EACH:-20}" --connections "${CONNECTIONS:-16}" --out "${OUT:-lab-results}")
"$BIN/highkey-lab" report-guard "${options[@]}" --scale "${SCALE:-0.1}" --pid "highkey=${SERVERS[0]}" --pid "mysql-8.0.12=${SERVERS[1]}"
"$BIN/highkey-lab" ch "${options[@]}" --warehouses "${WAREHOUSES:-2}" --limit "${LIMIT:-120}"
