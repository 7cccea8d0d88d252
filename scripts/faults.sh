#!/usr/bin/env bash
# Bad packets, damaged files, full disks, statements too long: faults.sh [--short] [--only GROUP] [--seed N]
source "$(dirname "$0")/lib.sh"
"$BIN/highkey-sim" faults --binary "$BIN/highkey" --workdir "$WORK/faults" "$@"
