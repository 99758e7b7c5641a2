#!/usr/bin/env bash
# Makes sure that what Wharf is built with is there, and says clearly what is not.
#
#   scripts/setup.sh build   Rust and a C compiler (SQLite and the allocator are C)
#   scripts/setup.sh console the same, and Node with npm for the console's page
#   scripts/setup.sh peers   the same as build, and Python with venv and Node with npm, with which
#                            make bench-peers installs the peers
#   scripts/setup.sh check   the same as build, rustfmt and clippy, Python with venv, Node with npm and
#                            Chromium for the TypeScript package, podman for tools in images,
#                            systemd and zsh for units and completions, PostgreSQL, and
#                            what the tests need besides (tests/requirements.txt, into target/tools)
#                            and the peers of MCP (tests/mcp, into target/mcp-peers)
#
# It may be run any number of times and takes a moment when nothing is missing.
set -euo pipefail

need="${1:-build}"

fail() {
    echo "setup: $1" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command as root: directly, or by sudo when it asks for no password.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# A compiler without the C library's headers is as bad as none, so one program is built.
c_compiler_works() {
    local out
    out="$(mktemp)"
    if printf '#include <stdio.h>\nint main(void) { return puts("ok") < 0; }\n' |
        "${CC:-cc}" -x c - -o "$out" >/dev/null 2>&1; then
        rm -f "$out"
        return 0
    fi
    rm -f "$out"
    return 1
}

apt_install() {
    # Package lists are often absent on fresh machines; they are fetched only when needed.
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    as_root apt-get update -qq >/dev/null 2>&1 || return 1
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

check_rust() {
    if ! have cargo || ! have rustc; then
        fail "Rust is missing. Install it from https://rustup.rs, open a new terminal and try again."
    fi
}

check_c_compiler() {
    c_compiler_works && return 0
    if have apt-get; then
        echo "setup: a C compiler is missing; installing gcc and libc6-dev"
        if apt_install gcc libc6-dev && c_compiler_works; then
            return 0
        fi
        fail "a C compiler is missing and could not be installed. Run as root: apt-get install gcc libc6-dev"
    fi
    case "$(uname -s)" in
        Darwin) fail "a C compiler is missing. Run: xcode-select --install" ;;
        *) fail "a C compiler is missing. Install gcc and the C library's headers with your package manager." ;;
    esac
}

# $1 is the command that shows the component, $2 its name in rustup.
check_component() {
    "$1" --version >/dev/null 2>&1 && return 0
    if have rustup; then
        echo "setup: $2 is missing; adding it to the toolchain"
        rustup component add "$2" >/dev/null 2>&1 && "$1" --version >/dev/null 2>&1 && return 0
    fi
    fail "$2 is missing. Run: rustup component add $2 (or install it with the package your Rust came from)."
}

# The Python package and the examples in Python are tried by the tests, which also install the
# package into an environment of its own. Debian has what makes one in a package apart.
python_works() {
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1
}

check_python() {
    python_works && return 0
    if have apt-get; then
        echo "setup: python3 or its venv module is missing; installing them"
        apt_install python3 python3-venv && python_works && return 0
    fi
    fail "python3 with its venv module is missing; the tests need it. Install it and try again."
}

# The TypeScript package and some examples are for Node; without it their tests say so.
check_node() {
    have node && have npm && return 0
    if have apt-get; then
        echo "setup: node or npm is missing; installing them"
        { have node || apt_install nodejs; } && { have npm || apt_install npm; } && return 0
    fi
    echo "setup: node or npm is missing, so there is no console and the TypeScript package is not tried" >&2
}

# The console's page cannot be built without Node.
require_node() {
    check_node
    have node && have npm || fail "node or npm is missing. Install Node.js and try again."
}

# Pages that offer tools are tried in a real browser; without one their tests say so.
check_browser() {
    have chromium || have chromium-browser || have google-chrome && return 0
    if have apt-get; then
        echo "setup: chromium is missing; installing it"
        apt_install chromium && return 0
    fi
    echo "setup: chromium is missing, so pages are not tried" >&2
}

# Tool servers in images are tried with a container engine; without one their test says so.
check_containers() {
    have podman && { have runc || have crun; } && return 0
    if have apt-get; then
        echo "setup: podman or runc is missing; installing them"
        apt_install podman runc && return 0
    fi
    echo "setup: podman or runc is missing, so no image is run" >&2
}

# Units are read by systemd itself, which needs not run, and completions are tried in zsh; without
# them their tests say so.
check_service_tools() {
    have systemd-analyze && have zsh && return 0
    if have apt-get; then
        echo "setup: systemd or zsh is missing; installing them"
        apt_install systemd zsh && return 0
    fi
    echo "setup: systemd or zsh is missing, so units are not read and completions not tried in zsh" >&2
}

# Debian starts a server of its own when it installs one; tests start theirs and do not use it.
check_postgres() {
    compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null && return 0
    if have apt-get; then
        echo "setup: PostgreSQL is missing; installing it"
        apt_install postgresql && return 0
    fi
    echo "setup: PostgreSQL is missing, so the store in it is not tried" >&2
}

check_prometheus() {
    have promtool && return 0
    if have apt-get; then
        echo "setup: promtool is missing; installing it"
        apt_install prometheus && return 0
    fi
    echo "setup: promtool is missing, so alerts are not checked" >&2
}

# Tests try the artifact store on a real S3 server, and clients of others. They come from the
# Python registry, with their hashes checked, into a folder that `cargo clean` removes.
check_test_tools() {
    local root tools wanted
    root="$(cd "$(dirname "$0")/.." && pwd)"
    tools="$root/target/tools/python"
    wanted="$root/tests/requirements.txt"
    cmp -s "$wanted" "$tools/requirements.txt" && return 0
    echo "setup: fetching what tests need (tests/requirements.txt)"
    rm -rf "$tools"
    python3 -m venv "$tools" >/dev/null ||
        fail "python3 cannot make a virtual environment. Install its venv module and try again."
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes -r "$wanted" ||
        fail "what tests need could not be fetched; is there a way to the Python registry?"
    cp "$wanted" "$tools/requirements.txt"
}

# The API document is read by a linter from the npm registry; the lock has its hash.
check_openapi_tools() {
    local root tools wanted
    root="$(cd "$(dirname "$0")/.." && pwd)"
    tools="$root/target/tools/openapi"
    wanted="$root/tests/openapi/package-lock.json"
    have npm || return 0
    cmp -s "$wanted" "$tools/installed.json" && return 0
    echo "setup: fetching what the test of the API document needs (tests/openapi)"
    rm -rf "$tools"
    mkdir -p "$tools"
    cp "$root/tests/openapi/package.json" "$wanted" "$tools"
    (cd "$tools" && npm ci --silent --no-audit --no-fund --ignore-scripts) ||
        fail "what the test of the API document needs could not be fetched; is there a way to the npm registry?"
    cp "$wanted" "$tools/installed.json"
}

# MCP is tried with the clients and servers of others and with its official referee, from both
# registries with their hashes checked. No script of theirs is run while they are installed.
check_mcp_peers() {
    local root peers wanted python
    root="$(cd "$(dirname "$0")/.." && pwd)"
    peers="$root/target/mcp-peers"
    wanted="$root/tests/mcp"
    have npm || return 0
    cat "$wanted/package-lock.json" "$wanted/requirements.txt" | cmp -s - "$peers/installed" && return 0
    echo "setup: fetching the peers of MCP (tests/mcp)"
    rm -rf "$peers"
    mkdir -p "$peers"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$peers"
    (cd "$peers" && npm ci --silent --no-audit --no-fund --ignore-scripts) ||
        fail "the peers of MCP could not be fetched; is there a way to the npm registry?"
    # A server in this environment is run in a sandbox that shows the system's folders, so the
    # system's Python is taken rather than one that a version manager put somewhere else.
    python=python3
    [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
    "$python" -m venv "$peers/py" >/dev/null ||
        fail "$python cannot make a virtual environment. Install its venv module and try again."
    "$peers/py/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes -r "$wanted/requirements.txt" ||
        fail "the peers of MCP could not be fetched; is there a way to the Python registry?"
    cat "$wanted/package-lock.json" "$wanted/requirements.txt" >"$peers/installed"
}

check_rust
check_c_compiler
case "$need" in
    build) ;;
    console) require_node ;;
    node) check_node ;;
    peers)
        check_python
        check_node
        ;;
    check)
        check_component rustfmt rustfmt
        check_component cargo-clippy clippy
        check_python
        check_node
        check_browser
        check_containers
        check_service_tools
        check_postgres
        check_prometheus
        check_test_tools
        check_openapi_tools
        check_mcp_peers
        ;;
    *) fail "unknown argument '$need'; use 'build', 'console', 'node', 'peers' or 'check'." ;;
esac
