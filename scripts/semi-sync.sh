#!/usr/bin/env bash
# Semi-synchronous replication from Highkey to MariaDB 10.11, by both wait points: acknowledgements, the timeout, the return, and kill -9 of the source
# again and again: whatever a client was told is on the replica. semi-sync.sh [CYCLES]
# The MySQL 8.0.12 that we compare with comes without the semi-synchronous plugins.
source "$(dirname "$0")/lib.sh"
CYCLES=${1:-10}
PORT=23870
REPLICA=$((PORT + 1))
sql() { mariadb --no-defaults -N -h127.0.0.1 -P"$1" -uroot -e "$2"; }
status() { sql $PORT "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Rpl_semi_sync_source_$1'"; }
fail() { echo "$1" >&2; sql $PORT "SHOW STATUS LIKE 'Rpl_semi_sync_source%'" >&2 || true; sql $REPLICA 'SHOW SLAVE STATUS\G' >&2 || true; exit 1; }
is() { # is WHAT VALUE: waits until a status variable has a value
    for _ in $(seq 200); do
        [ "$(status "$1")" = "$2" ] && return 0
        sleep 0.05
    done
    fail "Rpl_semi_sync_source_$1 is $(status "$1"), not $2"
}
start_source() { # again after a kill
    "$BIN/highkey" serve --datadir "$WORK/source" --port $PORT --server-id=1 --log-bin --collation-server=utf8mb4_general_ci --max-binlog-size=64K \
        --rpl-semi-sync-source-enabled=1 --rpl-semi-sync-source-timeout=60000 --rpl-semi-sync-source-wait-point="$POINT" >>"$WORK/source.log" 2>&1 &
    SOURCE=$!
    SERVERS+=("$SOURCE")
    wait_for $PORT || { tail "$WORK/source.log"; exit 1; }
}
applied() { # until the replica has applied what it has read; its source may be gone
    for _ in $(seq 300); do
        state=$(mariadb --no-defaults -h127.0.0.1 -P$REPLICA -uroot -e 'SHOW SLAVE STATUS\G')
        read -r read_file read_pos exec_file exec_pos < <(awk '/ Master_Log_File:/ { a = $2 } /Read_Master_Log_Pos:/ { b = $2 } /Relay_Master_Log_File:/ { c = $2 } /Exec_Master_Log_Pos:/ { d = $2 } END { print a, b, c, d }' <<<"$state")
        [ "$read_file $read_pos" = "$exec_file $exec_pos" ] && return 0
        sleep 0.05
    done
    fail "the replica does not apply what it has read"
}

for POINT in AFTER_SYNC AFTER_COMMIT; do
    rm -rf "$WORK/source"
    # Set up without a replica, and so without waiting.
    start_source
    sql $PORT "SET GLOBAL rpl_semi_sync_source_enabled=0; SET sql_log_bin=0; CREATE USER repl@'%' IDENTIFIED WITH mysql_native_password BY 'repl'; SET sql_log_bin=1; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"
    sql $PORT "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; SET GLOBAL rpl_semi_sync_master_enabled=1"
    start_mariadb $REPLICA --server-id=2 --rpl-semi-sync-slave-enabled=ON
    sql $REPLICA "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=no,
        MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4; START SLAVE"
    is clients 1

    # Acknowledged, definitions and transactions in two phases too.
    before=$(status yes_tx)
    for id in $(seq 1 50); do sql $PORT "INSERT INTO d.t VALUES ($id, 0)"; done
    sql $PORT "CREATE TABLE d.u (id INT); BEGIN; INSERT INTO d.u VALUES (1); UPDATE d.t SET v = 1; COMMIT"
    sql $PORT "XA START 'a'; INSERT INTO d.u VALUES (2); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'"
    [ "$(status status) $(status no_tx)" = "ON 0" ] || fail "semi-synchronous replication is not on"
    [ $(($(status yes_tx) - before)) -ge 54 ] || fail "$(status yes_tx) acknowledged, $before before"

    # A replica that does not answer: the timeout, asynchronous commits, and back.
    sql $PORT "SET GLOBAL rpl_semi_sync_source_timeout=300"
    sql $REPLICA "STOP SLAVE IO_THREAD"
    is clients 0
    sql $PORT "INSERT INTO d.t VALUES (101, 0)"
    [ "$(status status) $(status no_times)" = "OFF 1" ] || fail "no timeout"
    sql $PORT "INSERT INTO d.t VALUES (102, 0)"
    [ "$(status no_tx)" = 2 ] || fail "$(status no_tx) commits were not acknowledged"
    sql $REPLICA "START SLAVE IO_THREAD"
    is status ON
    sql $PORT "SET GLOBAL rpl_semi_sync_source_timeout=60000; INSERT INTO d.t VALUES (103, 0)"
    [ "$(status no_tx)" = 2 ] || fail "not acknowledged after the return"

    # A client waits, another one does not see what it waits for (AFTER_SYNC); a KILL ends the wait.
    sql $REPLICA "STOP SLAVE IO_THREAD"
    is clients 0
    mariadb --no-defaults -h127.0.0.1 -P$PORT -uroot -e "INSERT INTO d.t VALUES (104, 0)" 2>/dev/null &
    waiting=$!
    is wait_sessions 1
    sleep 0.2
    seen=$(sql $PORT "SELECT COUNT(*) FROM d.t WHERE id = 104")
    [ "$POINT $seen" = "AFTER_SYNC 0" ] || [ "$POINT $seen" = "AFTER_COMMIT 1" ] || fail "$POINT: others see $seen rows"
    id=$(sql $PORT "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync%'")
    sql $PORT "KILL $id"
    wait $waiting || true
    sql $REPLICA "START SLAVE IO_THREAD"
    is wait_sessions 0
    [ "$(sql $PORT "SELECT COUNT(*) FROM d.t WHERE id = 104")" = 1 ] || fail "what was killed is gone"

    # Whatever a client was told before a kill -9 is on the replica, even if the source never comes back.
    next=1000
    for cycle in $(seq "$CYCLES"); do
        : >"$WORK/told"
        for client in 1 2 3 4; do
            (for id in $(seq $((next + client * 100000)) $((next + client * 100000 + 5000))); do echo "INSERT INTO d.t VALUES ($id, $client); SELECT $id;"; done |
                mariadb --no-defaults -N --unbuffered -h127.0.0.1 -P$PORT -uroot >>"$WORK/told" 2>/dev/null) &
        done
        sleep "$(awk "BEGIN { srand($cycle); print 0.5 + rand() }")"
        [ "$(status status) $(status no_tx)" = "ON 0" ] || [ "$cycle" = 1 ] || fail "semi-synchronous replication went off"
        kill -9 "$SOURCE"
        wait "$SOURCE" 2>/dev/null || true
        applied
        sort -n "$WORK/told" >"$WORK/told.sorted"
        sql $REPLICA "SELECT id FROM d.t" | sort -n >"$WORK/held"
        missing=$(comm -23 <(sort "$WORK/told.sorted") <(sort "$WORK/held") | wc -l)
        [ "$missing" = 0 ] || fail "$missing of $(wc -l <"$WORK/told") commits that clients were told of are not on the replica"
        echo "$POINT, kill $cycle: $(wc -l <"$WORK/told") commits that clients were told of are on the replica"
        next=$((next + 6000))
        start_source
        sql $REPLICA "STOP SLAVE; START SLAVE"
        is clients 1
        is status ON
    done
    sql $PORT "INSERT INTO d.t VALUES (99, 99)"
    applied
    [ "$(sql $PORT "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" = "$(sql $REPLICA "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" ] || fail "source and replica differ"
    stop_all
    rm -rf "$WORK"/mariadb-*
done
echo "semi-synchronous replication holds"
