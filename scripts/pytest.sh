#!/usr/bin/env bash
# pytest.sh: every Python test, in two processes: those that use this machine's network, one by one, wait more than they work; the others
# run beside them. What the first say is printed when both are done.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p target
python -m pytest -m network >target/network-tests.log 2>&1 &
network=$!
trap 'kill "$network" 2>/dev/null' EXIT
python -m pytest -m "not network"
others=$?
wait "$network"
network_status=$?
cat target/network-tests.log
exit $((others | network_status))
