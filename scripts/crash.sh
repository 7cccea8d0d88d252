#!/usr/bin/env bash
# Kill -9 under a mixed concurrent load: crash.sh [CYCLES] [SEED] [SERVER OPTION...]
# By default with a binary log, whose events must make the rows that there are; --skip-log-bin goes without.
source "$(dirname "$0")/lib.sh"
OPTIONS=("${@:3}")
[ $# -gt 2 ] || OPTIONS=(--log-bin --server-id=1)
"$BIN/highkey-sim" crash --binary "$BIN/highkey" --datadir "$WORK/crash" --cycles "${1:-200}" --seed "${2:-$RANDOM}" -- \
    --innodb-buffer-pool-size=32M "${OPTIONS[@]}" || { tail -50 "$WORK/crash.log"; exit 1; }
