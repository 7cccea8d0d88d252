#!/usr/bin/env bash
# What idle connections cost. Highkey, MySQL 8.0.12 and MariaDB 10.11. COUNTS, REPEATS, SECONDS_EACH and OUT change the size of the run.
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
ulimit -n "$(ulimit -H -n)"
equal=(--innodb-buffer-pool-size=128M --max-connections=12000)
servers=()

# measured NAME START PORT [OPTION...]
measured() {
    local name=$1 start=$2 port=$3
    shift 3
    "$start" "$port" "${equal[@]}" "$@"
    servers+=(--server "$name=mysql://root@127.0.0.1:$port" --pid "$name=${SERVERS[-1]}")
}

measured highkey start_highkey 23871 --skip-log-bin
measured mysql-8.0.12 start_mysql 23872 --skip-log-bin --open-files-limit=40000
measured mariadb-10.11 start_mariadb 23873 --skip-log-bin
"$BIN/highkey-lab" idle "${servers[@]}" --counts "${COUNTS:-0,1000,9000}" --repeats "${REPEATS:-3}" --seconds "${SECONDS_EACH:-3}" --out "${OUT:-lab-results}"
