#!/usr/bin/env bash
# Source 001: what the binary log costs. Highkey, MySQL 8.0.12 and MariaDB 10.11, each with it and without, equal durability and buffer pool.
# TABLES, ROWS, CONNECTIONS, REPEATS, SECONDS_EACH and OUT change the size of the run.
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
equal=(--innodb-buffer-pool-size=512M --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=ON --max-connections=1000)
servers=()

# both NAME START PORT [OPTION...]: a server with the log on PORT, one without on the next.
both() {
    local name=$1 start=$2 port=$3
    shift 3
    "$start" "$port" "${equal[@]}" "$@" --log-bin --server-id=1 --binlog-format=ROW --sync-binlog=1
    servers+=(--server "$name-on=mysql://root@127.0.0.1:$port" --pid "$name-on=${SERVERS[-1]}")
    "$start" "$((port + 1))" "${equal[@]}" "$@" --skip-log-bin
    servers+=(--server "$name-off=mysql://root@127.0.0.1:$((port + 1))" --pid "$name-off=${SERVERS[-1]}")
}

both highkey start_highkey 23831
both mysql-8.0.12 start_mysql 23833 --innodb-log-file-size=512M
both mariadb-10.11 start_mariadb 23835 --innodb-log-file-size=512M
"$BIN/highkey-lab" commits "${servers[@]}" --tables "${TABLES:-8}" --rows "${ROWS:-20000}" --connections "${CONNECTIONS:-1,16,64,256}" \
    --repeats "${REPEATS:-3}" --seconds "${SECONDS_EACH:-5}" --out "${OUT:-lab-results}"
