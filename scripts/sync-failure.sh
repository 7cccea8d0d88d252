#!/usr/bin/env bash
# A sync of the running server fails under a mixed concurrent load: it stops, and has what it acknowledged. sync-failure.sh [CYCLES] [SEED] [CALL:ERROR...]
# pwrite64:EIO and pwrite64:ENOSPC for writes. strace has to be allowed to attach: as root, as a rule.
source "$(dirname "$0")/lib.sh"
command -v strace >/dev/null || { apt-get update -qq && apt-get install -y -qq strace >/dev/null; }
CALLS=("${@:3}")
[ $# -gt 2 ] || CALLS=(fdatasync:EIO)
"$BIN/highkey-sim" crash --binary "$BIN/highkey" --datadir "$WORK/crash" --cycles "${1:-20}" --seed "${2:-$RANDOM}" "${CALLS[@]/#/--fail=}" -- \
    --innodb-buffer-pool-size=32M --log-bin --server-id=1 || { tail -50 "$WORK/crash.log"; exit 1; }
