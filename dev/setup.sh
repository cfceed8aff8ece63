#!/usr/bin/env bash
# Makes a Debian 12 ready to build, test and run hangar: installs the packages of dev/packages.txt and,
# where the system's own are too old, puts toolchains into the cache. Needs root or sudo only if
# something is missing; takes a fraction of a second if nothing is. Safe to repeat.
#
#   setup.sh [--tests|--package|--aarch64]   --tests: what only tests need, too; --package: what tests/package needs, too;
#                                            --aarch64: what programs for that processor, and tests/aarch64, need, too
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

go_needed=1.26 go_pinned=1.26.8
rust_needed=1.95
toolchain=$HANGAR_CACHE_DIR/toolchain

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this user is not root and has no sudo; as root, run: $*"
  fi
}

# at_least HAVE NEED: whether version HAVE is NEED or newer.
at_least() { [ -n "$1" ] && printf '%s\n' "$2" "$1" | sort --version-sort --check=quiet; }

apt_install() {
  command -v apt-get >/dev/null || die "this is not a Debian; install what provides: $*"
  say "installing Debian packages: $*"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 --no-install-recommends "$@" >&2 </dev/null
}

install_packages() {
  local -a wanted missing
  mapfile -t wanted < <(sed 's/#.*//' "$here/packages.txt" | awk 'NF {print $1}')
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort -u))
  if [ ${#missing[@]} = 0 ]; then return; fi
  apt_install "${missing[@]}"
}

go_version() { (cd / && go env GOVERSION 2>/dev/null | sed 's/^go//') || true; }

# The Go module proxy serves Go's own toolchains as a module; the checksum database vouches for them.
# A Go that is new enough would fetch them by itself, but Debian's (1.19) cannot do that yet.
install_go() {
  if at_least "$(go_version)" "$go_needed"; then return; fi
  command -v go >/dev/null || apt_install golang-go
  say "fetching Go $go_pinned from the Go module proxy (the system has $(go_version))"
  local arch module
  arch=$(dpkg --print-architecture)
  # `go mod download` wants a directory outside of any module, and GOTOOLCHAIN would switch to the toolchain itself.
  module=$(cd / && GOTOOLCHAIN=local GOFLAGS=-modcacherw go mod download -json \
    "golang.org/toolchain@v0.0.1-go$go_pinned.linux-$arch" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  mkdir -p "$toolchain/bin"
  rm -rf "$toolchain/go.new" "$toolchain/go"
  cp -r "$module" "$toolchain/go.new"
  chmod -R u+w "$toolchain/go.new"
  # The go command does the same after such a download: module archives carry no modes and no nested go.mod files.
  chmod +x "$toolchain/go.new/bin/"* "$toolchain/go.new/pkg/tool/"*/*
  find "$toolchain/go.new" -name _go.mod -execdir mv {} go.mod \;
  mv "$toolchain/go.new" "$toolchain/go"
  ln -sf ../go/bin/go ../go/bin/gofmt "$toolchain/bin/"
  . "$here/env.sh"
  hash -r
  at_least "$(go_version)" "$go_needed" || die "go is $(go_version) after installing $go_pinned"
}

rust_version() { rustc --version 2>/dev/null | awk '{print $2}' || true; }

install_rust() {
  if at_least "$(rust_version)" "$rust_needed"; then return; fi
  say "using Debian's Rust instead of $(command -v rustc) ($(rust_version))"
  mkdir -p "$toolchain/bin"
  ln -sf /usr/bin/rustc /usr/bin/rustdoc /usr/bin/cargo "$toolchain/bin/"
  . "$here/env.sh"
  hash -r
  at_least "$(rust_version)" "$rust_needed" || die "rustc is $(rust_version), needed is $rust_needed or newer"
}

# Extracts programs for tests from a Debian package, whose installation would start services on ports that tests
# choose themselves.
unpack_programs() { # PACKAGE PROGRAM...
  local package=$1 program work
  shift
  if [ -x "$toolchain/bin/${!#}" ]; then return; fi
  say "unpacking Debian's $package (not installing it: its package starts a service)"
  work=$(mktemp -d)
  # If no package was missing, the package index may be absent.
  (cd "$work" && { apt-get download -q "$package" >&2 2>/dev/null || { as_root apt-get update -qq && apt-get download -q "$package"; } >&2; } &&
    dpkg-deb -x "$package"_*.deb root)
  mkdir -p "$toolchain/bin"
  for program in "$@"; do install -m 755 "$work/root/usr/bin/$program" "$toolchain/bin/"; done
  rm -rf "$work"
}

# Bundles TypeScript: `hangar machine build` and the machines of examples and tests. Built from its Go
# module, pinned by tools/esbuild/go.sum.
install_esbuild() {
  local pinned
  pinned=$(awk '$1 == "github.com/evanw/esbuild" {print substr($2, 2)}' "$here/tools/esbuild/go.mod")
  if [ "$("$toolchain/bin/esbuild" --version 2>/dev/null)" = "$pinned" ]; then return; fi
  say "building esbuild $pinned"
  mkdir -p "$toolchain/bin"
  (cd "$here/tools/esbuild" && GOFLAGS='' go build -mod=readonly -buildvcs=false -trimpath -ldflags '-s -w' \
    -o "$toolchain/bin/esbuild" github.com/evanw/esbuild/cmd/esbuild)
}

# Its Debian package conflicts with other vendors' Node.js, which bring an npm of their own.
install_npm() { command -v npm >/dev/null || apt_install npm; }

# What the build bundles into the console's page.
install_page_packages() { "$here/../src/console/page/packages.sh" >/dev/null; }

# The browser of tests/e2e/test_console.py. It brings two hundred packages, which nothing else here uses.
install_browser_tests() {
  local package
  command -v chromium >/dev/null || apt_install chromium fonts-dejavu-core
  # The versions of npm-packages.txt; both run on Debian's Node.js.
  for package in playwright-core@1.60.0 axe-core@4.14.1; do "$here/npm-package.sh" $package >/dev/null; done
}

# lintian alone brings a hundred packages of Perl, which nothing else here uses.
install_package_tests() {
  local program
  for program in lintian debootstrap systemd-nspawn; do
    command -v $program >/dev/null || { apt_install lintian debootstrap systemd-container && return; }
  done
}

# Programs for aarch64 are built with clang, and run in an emulator: a processor for the unit tests, a whole board for the rest.
install_aarch64() {
  if ! command -v aarch64-linux-gnu-ld >/dev/null || ! command -v qemu-aarch64-static >/dev/null || ! command -v qemu-system-aarch64 >/dev/null; then
    apt_install binutils-aarch64-linux-gnu qemu-user-static qemu-system-arm
  fi
  # The standard library of a Rust that rustup has installed; Debian's comes with dev/sysroot.sh.
  if command -v rustup >/dev/null && [ ! -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
    rustup target add aarch64-unknown-linux-gnu >&2
  fi
}

install_packages
install_npm
install_go
install_rust
install_esbuild
install_page_packages
if [ "${1:-}" = --tests ]; then
  unpack_programs docker-registry docker-registry
  unpack_programs prometheus prometheus promtool
  install_browser_tests
fi
if [ "${1:-}" = --package ]; then install_package_tests; fi
if [ "${1:-}" = --aarch64 ]; then install_aarch64; fi
