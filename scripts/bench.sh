#!/usr/bin/env bash
# The engine by itself, then sources 000, 003 and 004 beside MySQL 8.0.12 and MariaDB 10.11, equal durability and buffer pool.
# ROWS, REPEATS, SECONDS_EACH and OUT change the size of the run.
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
cargo build --release --workspace --examples
"$BIN/examples/engine_bench" 3 "$WORK/engine"
equal=(--innodb-buffer-pool-size=1G --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=ON --max-connections=1000)
start_highkey 23821 "${equal[@]}"
start_mysql 23822 "${equal[@]}" --skip-log-bin --innodb-log-file-size=512M
start_mariadb 23823 "${equal[@]}" --skip-log-bin --innodb-log-file-size=512M
servers=(--server highkey=mysql://root@127.0.0.1:23821 --server mysql-8.0.12=mysql://root@127.0.0.1:23822
    --server mariadb-10.11=mysql://root@127.0.0.1:23823 --repeats "${REPEATS:-3}" --out "${OUT:-lab-results}")
"$BIN/highkey-lab" insert-select "${servers[@]}" --rows "${ROWS:-200000}"
"$BIN/highkey-lab" auto-increment "${servers[@]}" --seconds "${SECONDS_EACH:-5}"
"$BIN/highkey-lab" load-order "${servers[@]}" --rows "${ROWS:-200000}" --seconds "${SECONDS_EACH:-5}"
"$BIN/highkey-lab" key-ranges "${servers[@]}" --rows "${ROWS:-200000}"
