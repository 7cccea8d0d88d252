#!/usr/bin/env bash
# sysbench's oltp_point_select and oltp_read_write on Highkey, MySQL 8.0.12 and MariaDB 10.11, equal durability and buffer pool, in turns, medians.
# TESTS, MODES (text, prepared), THREADS, TABLES, ROWS, REPEATS, SECONDS_EACH and LOG (on: with the binary log) change the run.
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
equal=(--innodb-buffer-pool-size=512M --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=ON --max-connections=1000)
log=(--skip-log-bin)
[ "${LOG:-off}" = on ] && log=(--log-bin --server-id=1 --binlog-format=ROW --sync-binlog=1)
tables=${TABLES:-8} rows=${ROWS:-50000} seconds=${SECONDS_EACH:-5}
start_highkey 23891 "${equal[@]}" "${log[@]}"
start_mysql 23892 "${equal[@]}" "${log[@]}" --innodb-log-file-size=512M
start_mariadb 23893 "${equal[@]}" "${log[@]}" --innodb-log-file-size=512M
names=(highkey mysql-8.0.12 mariadb-10.11)

# on N TEST [OPTION...] COMMAND: sysbench against the n-th server.
on() {
    local n=$1 test=$2
    shift 2
    sysbench "oltp_$test" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=$((23891 + n)) --mysql-user=root --mysql-db=sbtest --tables="$tables" --table-size="$rows" "$@"
}

# ticks N: processor time of the n-th server so far, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/${SERVERS[$1]}/stat"; }

for n in 0 1 2; do
    mariadb -h127.0.0.1 -P$((23891 + n)) -uroot -e "CREATE DATABASE sbtest"
    on "$n" read_write prepare >/dev/null
done
for test in ${TESTS:-point_select read_write}; do
    for mode in ${MODES:-text prepared}; do
        [ "$mode" = text ] && ps=disable || ps=auto
        for threads in ${THREADS:-1 16 64}; do
            for repeat in $(seq "${REPEATS:-3}"); do
                for n in 0 1 2; do
                    before=$(ticks "$n")
                    on "$n" "$test" --threads="$threads" --time="$seconds" --db-ps-mode=$ps run >"$WORK/run"
                    awk -v test="$test" -v mode="$mode" -v threads="$threads" -v name="${names[$n]}" -v cpu=$(($(ticks "$n") - before)) '
                        /transactions:/ { tps = substr($3, 2) }
                        /queries:/ { queries = $2 }
                        /95th percentile:/ { p95 = $3 }
                        END { print test, mode, threads, name, tps, p95, cpu * 10000 / queries }' "$WORK/run" >>"$WORK/figures"
                done
            done
        done
    done
done
awk '
    function median(list,   n, v, i, j, t) {
        n = split(list, v, " ")
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
        return v[int((n + 1) / 2)]
    }
    {
        key = $1 " " $2 " " $3
        if (!(key in seen)) { seen[key] = 1; order[++count] = key }
        tps[key, $4] = tps[key, $4] " " $5; p95[key, $4] = p95[key, $4] " " $6; cpu[key, $4] = cpu[key, $4] " " $7
    }
    END {
        print "| test, protocol, connections | server | transactions/s | p95 ms | server cpu us/query | highkey is |"
        print "|---|---|---:|---:|---:|---:|"
        split("highkey mysql-8.0.12 mariadb-10.11", names, " ")
        for (i = 1; i <= count; i++) for (n = 1; n <= 3; n++) {
            k = order[i]; own = median(tps[k, "highkey"])
            printf "| %s | %s | %.0f | %.2f | %.1f | %s |\n", k, names[n], median(tps[k, names[n]]), median(p95[k, names[n]]), median(cpu[k, names[n]]), n == 1 ? "" : sprintf("%.2f x", own / median(tps[k, names[n]]))
        }
    }' "$WORK/figures"
