#!/usr/bin/env bash
# Kill -9 under a mixed concurrent load: crash.sh [CYCLES] [SEED]
source "$(dirname "$0")/lib.sh"
"$BIN/highkey-sim" crash --binary "$BIN/highkey" --datadir "$WORK/crash" --cycles "${1:-200}" --seed "${2:-$RANDOM}" -- \
    --innodb-buffer-pool-size=32M || { tail -50 "$WORK/crash.log"; exit 1; }
