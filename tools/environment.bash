# shellcheck shell=bash
# The Python environment of the checkout, for tools/up and tools/test; sourced, with the checkout as working directory.
#
# Written for bash 3.2 as well, which is what macOS has: no associative arrays, no mapfile, no empty arrays under -u.

venv=.venv
venv_python="$venv/bin/python"
stamp="$venv/blockpty-installed"

say() { printf '%s\n' "$*" >&2; }

# Version managers leave commands on PATH that exist and fail, so a candidate counts only if it runs.
_is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
_can_make_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Print the first Python >= 3.11 that can make a virtual environment; $PYTHON, where set, is asked first.
find_python() {
    local candidate without_venv=""
    for candidate in "${PYTHON:-python3.13}" python3.13 python3.12 python3.11 python3; do
        _is_new_enough "$candidate" || continue
        if _can_make_venv "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
        without_venv="$candidate"
    done
    if [ -n "$without_venv" ]; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt_install python3-venv && _can_make_venv "$without_venv"; then
            printf '%s\n' "$without_venv"
            return 0
        fi
        say "$without_venv cannot make a virtual environment. On Debian: apt-get install python3-venv"
    else
        say "Python 3.11 or newer is needed. On Debian: apt-get install python3 python3-venv; on macOS: brew install python"
    fi
    return 1
}

# Install Debian packages, quietly; the lists are fetched only when a package is not known without.
apt_install() {
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
    "${install[@]}" >/dev/null 2>&1 || { apt-get update -qq >/dev/null 2>&1 && "${install[@]}" >/dev/null 2>&1; }
}

# What an installation depends on: the metadata, the sources of the page, which is built by it, and the place, because an
# editable install points to it.
_fingerprint() { printf '%s %s %s' "$(cksum <pyproject.toml)" "$(_page_sources | cksum)" "$PWD"; }
_page_sources() {
    find blockpty/surfaces/web blockpty/surfaces/keys.json hatch_build.py -name node_modules -prune -o -type f -print | LC_ALL=C sort | xargs cat
}

# True if the environment holds what pyproject.toml asks for now; $1 is what it is needed for, "run" or "dev".
_is_installed() {
    local purpose="$1" installed
    if ! _is_new_enough "$venv_python" || [ ! -f "$stamp" ]; then return 1; fi
    installed="$(cat "$stamp")"
    [ "$installed" = "$purpose $(_fingerprint)" ] || [ "$installed" = "dev $(_fingerprint)" ]
}

# Make or complete .venv with the package, editable; $1 is "run", or "dev" for what the tests need as well.
ensure_environment() {
    local purpose="$1" python what=".[all]" compile="--compile"
    if _is_installed "$purpose"; then return 0; fi
    if ! _is_new_enough "$venv_python"; then
        python="$(find_python)" || return 1
        say "making $venv with $("$python" --version)"
        # --clear: what is there was made by a Python that is gone.
        "$python" -m venv --clear "$venv" || return 1
    fi
    "$venv_python" -m pip --version >/dev/null 2>&1 || "$venv_python" -m ensurepip >/dev/null 2>&1 || {
        say "$venv has no pip: remove it and run this again"
        return 1
    }
    # The tests compile modules into a place of their own (tools/test).
    [ "$purpose" = run ] || { what=".[$purpose]" compile=""; }
    say "installing blockpty into $venv"
    # Node, which only the page is built with, may be out of reach: that does not stop all the rest.
    if ! "$venv_python" tools/install $compile "$what" &&
        ! BLOCKPTY_NO_PAGE=1 "$venv_python" tools/install $compile "$what"; then
        # An environment that works for an older pyproject.toml is good enough to run the program without a network.
        if [ "$purpose" = run ] && "$venv_python" -c 'from blockpty import Engine' >/dev/null 2>&1; then
            say "could not install (no network?); going on with what $venv has"
            return 0
        fi
        say "installing failed; the message of pip is above"
        return 1
    fi
    [ -f blockpty/_page/index.html ] || say "the page of the server was not built (python hatch_build.py says why);" \
        "all else works without it"
    printf '%s %s' "$purpose" "$(_fingerprint)" >"$stamp"
}
