#!/usr/bin/env bash
# The speed table of a profile-guided build, which is how `make wheel` builds the release: an instrumented build runs short forms
# of some cases, and the compiler lays the code out for what it saw.
#
#   benches/pgo.sh [OPTION OF THE BENCHMARK…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profdata="$(dirname "$(rustc --print target-libdir)")/bin/llvm-profdata"
if [ ! -x "$profdata" ]; then
    echo "benches/pgo.sh: missing: llvm-profdata. Install it with: rustup component add llvm-tools" >&2
    exit 1
fi
profile="$PWD/target/pgo/profile"
rm -rf "$profile"
mkdir -p "$profile"

RUSTFLAGS="-Cprofile-generate=$profile" CARGO_TARGET_DIR=target/pgo/trained \
    cargo bench --locked -p paceline-lab --bench engine -- --repeat 1 \
    --case dumbbell-n100 --case fat-loss --case mpc --case chain \
    --set 'duration="0.5 s"' --set 'warmup="0 s"' >"$profile/log"
"$profdata" merge --output="$profile/merged.profdata" "$profile"/*.profraw

RUSTFLAGS="-Cprofile-use=$profile/merged.profdata" CARGO_TARGET_DIR=target/pgo/used \
    cargo bench --locked -p paceline-lab --bench engine -- "$@"
