# Shared by the scripts: where things are, and servers that stop with the script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/highkey-target}
BIN=$CARGO_TARGET_DIR/release
ORACLES=${HIGHKEY_ORACLES:-$HOME/.cache/highkey-oracles}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/highkey.XXXXXX")
SERVERS=()

stop_all() {
    for pid in "${SERVERS[@]:-}"; do
        [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    SERVERS=()
}
trap 'stop_all; rm -rf "$WORK"' EXIT

# wait_for PORT: until a server accepts connections there.
wait_for() {
    for _ in $(seq 600); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.1
    done
    echo "no server on port $1" >&2
    return 1
}

# start_highkey PORT [OPTION...]
start_highkey() {
    local port=$1
    shift
    "$BIN/highkey" serve --datadir "$WORK/highkey-$port" --port "$port" "$@" >"$WORK/highkey-$port.log" 2>&1 &
    SERVERS+=($!)
    wait_for "$port" || { cat "$WORK/highkey-$port.log"; return 1; }
}

# start_mysql PORT [OPTION...]: MySQL 8.0.12; again on what it has
start_mysql() {
    local port=$1 base=$ORACLES/mysql-8.0.12 data=$WORK/mysql-$1
    shift
    local common=(--no-defaults --basedir="$base" --datadir="$data" --lc-messages-dir="$base/share/english" --user=root)
    [ -d "$data" ] || { mkdir -p "$data"; "$base/bin/mysqld" "${common[@]}" --initialize-insecure >"$WORK/mysql-$port.log" 2>&1; }
    "$base/bin/mysqld" "${common[@]}" --port="$port" --socket="$data.sock" --mysqlx=OFF --bind-address=127.0.0.1 "$@" >>"$WORK/mysql-$port.log" 2>&1 &
    SERVERS+=($!)
    wait_for "$port"
}

# start_mariadb PORT [OPTION...]: MariaDB 10.11
start_mariadb() {
    local port=$1 data=$WORK/mariadb-$1
    shift
    mariadb-install-db --no-defaults --user=root --datadir="$data" --auth-root-authentication-method=normal >"$WORK/mariadb-$port.log" 2>&1
    mariadbd --no-defaults --user=root --datadir="$data" --port="$port" --socket="$data.sock" --bind-address=127.0.0.1 "$@" >>"$WORK/mariadb-$port.log" 2>&1 &
    SERVERS+=($!)
    wait_for "$port"
}
