#!/usr/bin/env bash
# Makes this checkout ready: system packages, the virtual environment .venv, the package in it with its Rust extension.
# Does only what is missing, so a second call takes well under a second.
#
#   scripts/setup.sh run     what `paceline` needs
#   scripts/setup.sh test    that, and what some tests need (chromium, valgrind, kernel headers, QEMU and what guests run)
#   scripts/setup.sh rust    what the crates alone need: no virtual environment
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

purpose="${1:-run}"
case "$purpose" in
    run | test | rust) ;;
    *) echo "usage: scripts/setup.sh run|test|rust" >&2; exit 2 ;;
esac

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# The first Python of at least 3.11, or nothing.
find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

# Programs by the package that brings them, as Debian and Ubuntu call it.
missing_packages() {
    command -v cc >/dev/null || echo build-essential
    command -v make >/dev/null || echo make
    # For libbpf and the libelf it needs, which are built from source.
    command -v autoreconf >/dev/null || echo autoconf automake
    command -v autopoint >/dev/null || echo autopoint
    command -v flex >/dev/null || echo flex
    command -v bison >/dev/null || echo bison
    command -v gawk >/dev/null || echo gawk
    command -v pkg-config >/dev/null || echo pkg-config
    local python
    python="$(find_python)"
    if [ -z "$python" ]; then
        echo python3 python3-venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        echo python3-venv
    fi
}

# World `vm` boots a guest. The queueing discipline is built against the headers of a distribution's kernel and tried in one, too.
missing_for_guests() {
    [ "$(uname -m)" = x86_64 ] || return 0
    command -v busybox >/dev/null || echo busybox-static
    command -v cpio >/dev/null || echo cpio
    command -v iperf3 >/dev/null || echo iperf3
    command -v tc >/dev/null || echo iproute2
    command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
    # Debian's name. Where there is none, `make qdisc` says what to install.
    compgen -G '/lib/modules/*/build' >/dev/null || ! apt-cache show linux-headers-amd64 >/dev/null 2>&1 || echo linux-headers-amd64
}

# Wanted by `paceline kernel` (clang, at build) and by some tests: without them those are refused or skipped, and say so.
missing_optional_packages() {
    command -v clang >/dev/null || echo clang
    [ "$purpose" = test ] || return 0
    missing_for_guests
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
        command -v google-chrome >/dev/null || echo chromium
    command -v valgrind >/dev/null || echo valgrind
    # For the checks of every operation of the algorithms in C.
    compgen -G "$(clang -print-resource-dir 2>/dev/null)/lib/*/libclang_rt.ubsan_standalone*" >/dev/null || echo libclang-rt-dev
}

install_packages() {
    [ "$#" -gt 0 ] || return 0
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
    say "installing $*"
    DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

system_packages() {
    local required optional
    read -r -a required <<<"$(missing_packages | tr '\n' ' ')"
    read -r -a optional <<<"$(missing_optional_packages | tr '\n' ' ')"
    if [ "${#required[@]}" -gt 0 ]; then
        install_packages "${required[@]}" ||
            fail "missing: ${required[*]}. Install with: sudo apt-get install ${required[*]} (or your system's equivalent)"
    fi
    if [ "${#optional[@]}" -gt 0 ]; then
        install_packages "${optional[@]}" ||
            say "not found, 'paceline kernel' or some tests will be missing: ${optional[*]} (sudo apt-get install ${optional[*]})"
    fi
}

rust_toolchain() {
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        export PATH="$HOME/.cargo/bin:$PATH"
    fi
    command -v cargo >/dev/null || fail "missing: Rust (cargo). Install it with rustup, see https://rustup.rs"
    local wanted found
    wanted="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    found="$(rustc --version | cut -d' ' -f2)"
    if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -1)" != "$wanted" ]; then
        fail "Rust $found is too old; $wanted or newer is needed (rustup update)"
    fi
}

# Whether the package is installed, and nothing it is built from is newer than that.
package_is_current() {
    [ "$(cat .venv/.built 2>/dev/null)" = "$PWD" ] && [ -n "$(compgen -G 'python/paceline/_native*.so')" ] && [ -x python/paceline/_guest ] &&
        [ -z "$(find Cargo.toml Cargo.lock pyproject.toml crates bpf -newer .venv/.built -print -quit 2>/dev/null)" ]
}

python_package() {
    package_is_current && return
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
    # A virtual environment knows its own path: one that was moved is made anew.
    if [ "$(cat .venv/.home 2>/dev/null)" != "$PWD" ] || ! .venv/bin/python -c '' 2>/dev/null; then
        say "creating .venv"
        rm -rf .venv
        "$(find_python)" -m venv .venv
        echo "$PWD" >.venv/.home
    fi
    # Dependency groups need a recent pip.
    [ -x .venv/bin/maturin ] || .venv/bin/python -m pip install 'pip>=25.1' 'maturin>=1.9,<2'
    say "building the package into .venv (optimised; a few minutes the first time)"
    # The time is noted before the build: a file changed meanwhile is newer than that.
    echo "$PWD" >.venv/.building
    if ! VIRTUAL_ENV="$PWD/.venv" .venv/bin/maturin develop --release --locked --group dev >.venv/build.log 2>&1; then
        cat .venv/build.log >&2
        fail "the package did not build"
    fi
    # What runs in the guest of world vm: a program of its own, which the package brings along.
    cargo build --release --locked -p paceline-lab --bin paceline-guest >>.venv/build.log 2>&1 &&
        install -s -m 755 target/release/paceline-guest python/paceline/_guest ||
        { cat .venv/build.log >&2; fail "the guest of world vm did not build"; }
    mv .venv/.building .venv/.built
}

system_packages
rust_toolchain
[ "$purpose" = rust ] || python_package
