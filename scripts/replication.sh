#!/usr/bin/env bash
# MySQL 8.0.12 and MariaDB 10.11 replicate from Highkey, which is killed again and again under a mixed load, with all types, definitions and large transactions;
# MySQL is killed every REPLICA_SECONDS, too: replication.sh [CYCLES] [SEED]. At the end both hold the same rows as Highkey, table by table.
# MariaDB's position is safe in no crash without its own GTIDs, which no MySQL source has: it is only stopped. It goes without the table that has JSON, which is
# another type there.
source "$(dirname "$0")/lib.sh"
CYCLES=${1:-20}
SEED=${2:-$RANDOM}
PORT=23990
REPLICA_SECONDS=${REPLICA_SECONDS:-60}
OPTIONS=(--log-bin --server-id=1 --gtid-mode=ON --enforce-gtid-consistency=ON --collation-server=utf8mb4_general_ci --max-binlog-size=4M --innodb-buffer-pool-size=64M)
sql() { mariadb -N --default-character-set=utf8mb4 -h127.0.0.1 -P"$1" -uroot -e "$2"; }

MARIADB_IGNORES=load_a.types
# Both find the source when it comes, and again after every kill. MySQL 8.0.12 that is killed may have ended a prepared transaction and not noted its GTID: told of it
# again it knows no such XID (1397). That its rows are right shows at the end.
MYSQL=(--slave-skip-errors=1397 --server-id=11 --gtid-mode=ON --enforce-gtid-consistency=ON --log-bin --binlog-expire-logs-seconds=60 --max-binlog-size=16M --sync-binlog=0 --innodb-flush-log-at-trx-commit=1
    --relay-log-recovery=ON --master-info-repository=TABLE --relay-log-info-repository=TABLE)
MARIADB=(--server-id=12 --skip-log-bin --innodb-flush-log-at-trx-commit=0 --replicate-wild-ignore-table="$MARIADB_IGNORES")
start_mysql 23991 "${MYSQL[@]}"
MYSQL_PID=${SERVERS[-1]}
start_mariadb 23992 "${MARIADB[@]}"
sql 23991 "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_AUTO_POSITION=1, MASTER_CONNECT_RETRY=1,
    MASTER_RETRY_COUNT=100000, MASTER_HEARTBEAT_PERIOD=1; START SLAVE" 2>/dev/null
sql 23992 "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4,
    MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1, MASTER_USE_GTID=no; START SLAVE"

# MariaDB's receiver gives up (error 1595) when a connection broke between the rows events of a statement: it takes the events that begin every stream for
# the statement's end. Started again, it goes on where it was.
(while sleep 1; do sql 23992 "START SLAVE" 2>/dev/null || true; done) &
SERVERS+=($!)

# Kills MySQL, and starts it again, until there is a file `end`; whatever it had not applied it fetches again.
kill_mysql() {
    local seconds
    while true; do
        for ((seconds = 0; seconds < REPLICA_SECONDS; seconds++)); do
            [ ! -e "$WORK/end" ] || return 0
            sleep 1
        done
        kill -9 "$(cat "$WORK/mysql.pid")"
        while kill -0 "$(cat "$WORK/mysql.pid")" 2>/dev/null; do sleep 0.1; done
        start_mysql 23991 "${MYSQL[@]}"
        echo "${SERVERS[-1]}" >"$WORK/mysql.pid"
        echo killed >>"$WORK/kills"
    done
}
echo "$MYSQL_PID" >"$WORK/mysql.pid"
touch "$WORK/kills"
kill_mysql &
KILLS=$!
# A server that it has started is no child of this shell's.
trap 'touch "$WORK/end"; wait $KILLS 2>/dev/null || true; kill "$(cat "$WORK/mysql.pid")" 2>/dev/null; stop_all; rm -rf "$WORK"' EXIT

# Replicas that stay far behind would fill the disk: before each load both come near, while nobody writes, and the files that both have applied go.
cat >"$WORK/settle" <<'END'
load=$(cat "$2")
trap 'kill -CONT $load' EXIT
applied() { mariadb -h127.0.0.1 -P"$1" -uroot -e 'SHOW SLAVE STATUS\G' | awk '/Relay_Master_Log_File/ { print $2 }'; }
number() { expr "${1##*.}" + 0; }
for round in $(seq 600); do
    written=$(mariadb -N -h127.0.0.1 -P"$1" -uroot -e 'SHOW MASTER STATUS' | cut -f1)
    oldest=$(printf '%s\n' "$(applied 23991)" "$(applied 23992)" | sort | head -1)
    if [ -n "$oldest" ] && [ $(($(number "$written") - $(number "$oldest"))) -le 20 ]; then
        mariadb -h127.0.0.1 -P"$1" -uroot -e "PURGE BINARY LOGS TO '$oldest'"
        exit
    fi
    kill -STOP $load
    sleep 0.5
done
echo "a replica is at $oldest and the source at $written" >&2
for replica in 23991 23992; do
    mariadb -h127.0.0.1 -P$replica -uroot -e 'SHOW SLAVE STATUS\G SHOW PROCESSLIST' | grep -vE ': *$' >&2
done
mariadb -h127.0.0.1 -P"$1" -uroot -e 'SHOW PROCESSLIST' >&2
exit 1
END

# Every type, definitions and large transactions, beside the load of the crash driver. It waits for the source when that is killed.
"$BIN/highkey-sim" replica load --url mysql://root@127.0.0.1:$PORT --seconds 1000000 --clients 2 --pause-ms 20 --large-rows 500 --seed "$SEED" >"$WORK/load.log" 2>&1 &
LOAD=$!
SERVERS+=("$LOAD")
echo "$LOAD" >"$WORK/load.pid"
"$BIN/highkey-sim" crash --binary "$BIN/highkey" --datadir "$WORK/source" --port $PORT --cycles "$CYCLES" --seed "$SEED" --load-ms-max 1500 --no-one-phase --keep-binlog \
    --before-load "bash $WORK/settle $PORT $WORK/load.pid" \
    --setup "SET sql_log_bin=0" --setup "CREATE USER repl@'%' IDENTIFIED WITH mysql_native_password BY 'repl'" --setup "GRANT REPLICATION SLAVE ON *.* TO repl@'%'" --setup "SET sql_log_bin=1" \
    -- "${OPTIONS[@]}" || { tail -30 "$WORK/source.log"; exit 1; }
kill -0 $LOAD 2>/dev/null || { echo "the load has ended" >&2; cat "$WORK/load.log" >&2; exit 1; }
kill $LOAD
wait $LOAD 2>/dev/null || true
touch "$WORK/end"
wait $KILLS

"$BIN/highkey" serve --datadir "$WORK/source" --port $PORT "${OPTIONS[@]}" >>"$WORK/source.log" 2>&1 &
SERVERS+=($!)
wait_for $PORT
read -r file position _ < <(sql $PORT "SHOW MASTER STATUS")
tables=$(sql $PORT "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables
    WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1")
# dump PORT TABLE: every row, sorted as bytes: rows that a collation calls equal come in any order.
dump() { sql "$1" "SELECT * FROM $2" | LC_ALL=C sort; }
for replica in 23991 23992; do
    reached=$(sql $replica "SELECT MASTER_POS_WAIT('$file', $position, 300)")
    if [ "$reached" = NULL ] || [ "$reached" -lt 0 ]; then
        echo "the replica on port $replica did not come to $file:$position" >&2
        mariadb -h127.0.0.1 -P$replica -uroot -e "SHOW SLAVE STATUS\G" | grep -E "Running|Error|Log_File|Log_Pos" >&2
        exit 1
    fi
    held=0
    for table in $tables; do
        [ $replica != 23992 ] || [ "$table" != "$MARIADB_IGNORES" ] || continue
        held=$((held + 1))
        cmp <(dump $PORT "$table") <(dump $replica "$table") || {
            echo "$table differs on port $replica" >&2
            diff <(dump $PORT "$table") <(dump $replica "$table") | cut -c1-300 | head -20 >&2
            exit 1
        }
    done
    theirs=$(sql $replica "SELECT count(*) FROM information_schema.tables WHERE table_type = 'BASE TABLE'
        AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')")
    [ "$theirs" = $held ] || { echo "port $replica has $theirs tables" >&2; exit 1; }
done
files=$(sql $PORT "SHOW BINARY LOGS" | wc -l)
echo "replication: $CYCLES kills, $(wc -l <"$WORK/kills") of MySQL, $(wc -w <<<"$tables") tables, $files binary log files up to $file:$position, MySQL and MariaDB hold the same rows"
