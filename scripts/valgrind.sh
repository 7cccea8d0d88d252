#!/usr/bin/env bash
# The storage crate's page, log, pool and lock tests under valgrind: memcheck, then helgrind. Minutes. valgrind.sh [TEST...]
source "$(dirname "$0")/lib.sh"
command -v valgrind >/dev/null || { apt-get update && apt-get install -y valgrind; }
TESTS=("$@")
[ ${#TESTS[@]} -gt 0 ] || TESTS=(page:: wal:: lock::tests buffer::tests btree::tests::overflow)
BINARY=$(cargo test -p highkey-storage --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*highkey_storage-[^"]*\)".*/\1/p' | tail -1)
[ -x "$BINARY" ] || { echo "the storage tests do not compile" >&2; exit 1; }
# --fair-sched: spinning waiters would otherwise starve the thread they wait for.
echo "memcheck"
valgrind -q --error-exitcode=99 --fair-sched=yes "$BINARY" --test-threads=1 "${TESTS[@]}"
echo "helgrind"
valgrind -q --tool=helgrind --suppressions=scripts/valgrind.supp --error-exitcode=99 --fair-sched=yes --history-level=none \
    "$BINARY" --test-threads=1 "${TESTS[@]}"
