#!/usr/bin/env bash
# Records the golden answers from MySQL 8.0.12: record.sh [SCRIPT.sql|SCRIPT.sessions...]
source "$(dirname "$0")/lib.sh"
scripts/oracles.sh
start_mysql 23806 --secure-file-priv=
[ $# -gt 0 ] || set -- tests/golden/*.sql tests/sessions/*.sessions
for script in "$@"; do
    case $script in
    *.sessions) kind=sessions ;;
    *) kind=golden ;;
    esac
    "$BIN/highkey-sim" $kind record --url mysql://root@127.0.0.1:23806 "$script"
done
