#!/usr/bin/env bash
# Random queries over random tables, run in every way that the server has; all must answer the same: queries.sh [SECONDS] [SEED].
# MYSQL=1 compares with MySQL 8.0.12 too. A difference is printed with its seed; SAVE=DIR keeps a script of each.
source "$(dirname "$0")/lib.sh"
start_highkey 23894
options=(--url mysql://root@127.0.0.1:23894 --seconds "${1:-10}" ${2:+--seed "$2"} ${SAVE:+--save "$SAVE"})
if [ -n "${MYSQL:-}" ]; then
    scripts/oracles.sh
    start_mysql 23895 --skip-log-bin --innodb-flush-log-at-trx-commit=0
    options+=(--mysql mysql://root@127.0.0.1:23895)
fi
"$BIN/highkey-sim" queries "${options[@]}"
