#!/usr/bin/env bash
# Headers and libraries of Debian 12 for the processor HANGAR_ARCH, where it is not this machine's, and Rust's standard library for
# it. Keeps them in the cache, and installs nothing:
#
#   <cache>/sysroot-<arch>-<hash>/                    for clang --sysroot
#   <cache>/sysroot-<arch>-<hash>/rust/lib/rustlib/   for rustc --sysroot, beside this machine's
#   <cache>/sysroot-<arch>-<hash>/board/              packages of Debian's kernel and of busybox, for tests/aarch64
#
#   sysroot.sh              fetch what is missing, print the directory
#   sysroot.sh --print-dir  only print the directory, whether or not it exists
#
# apt fetches them from this machine's sources and verifies them; packages are unpacked, so none of their scripts runs.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

# Change the number when this script makes something else of the same packages.
recipe=1
mapfile -t packages < <(sed 's/#.*//' "$here/packages.txt" | awk '$1 ~ /^(lib.*-dev|zlib1g-dev)$/ && $1 !~ /clang-rt/ {print $1}')
packages+=(libc6-dev linux-libc-dev libgcc-12-dev libstdc++-12-dev libstd-rust-web-dev)
out=$HANGAR_CACHE_DIR/sysroot-$HANGAR_ARCH-$(sha256sum <<<"${packages[*]} $recipe" | cut -c1-16)
if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi
[ "$HANGAR_ARCH" = aarch64 ] || die "HANGAR_ARCH is $HANGAR_ARCH; another processor than this machine's can only be aarch64"

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/sysroot.lock"
flock 9
if [ -d "$out" ]; then
  echo "$out"
  exit
fi
say "fetching Debian's libraries for $HANGAR_ARCH (once, 100 MB)"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
: >"$work/apt/status"
# An apt of its own, on which nothing is installed: it resolves everything that the packages need.
cat >"$work/apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
Debug::NoLocking "true";
CONF
export APT_CONFIG=$work/apt/apt.conf
{ apt-get update -qq && apt-get install -qq -y --download-only "${packages[@]}"; } >"$work/log" 2>&1 9>&- ||
  { cat "$work/log" >&2; die "apt cannot fetch them"; }
kernel=$(apt-cache depends linux-image-arm64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2}')
mkdir "$work/board"
(cd "$work/board" && apt-get download -qq "$kernel" busybox-static) >>"$work/log" 2>&1 9>&- || { cat "$work/log" >&2; die "apt cannot fetch the board's"; }
for package in "$work"/apt/archives/*.deb; do dpkg-deb -x "$package" "$work"; done
# Links such as libm.so name a file below the root, which here is not this machine's.
find "$work" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfn "$(realpath --no-symlinks --relative-to="$(dirname "$link")" "$work$(readlink "$link")")" "$link"
done
mkdir -p "$work/rust/lib"
rustlib=$(cd "$work" && echo usr/lib/rust-*/lib/rustlib usr/lib/rustlib | tr ' ' '\n' | while read -r one; do [ -d "$one/aarch64-unknown-linux-gnu" ] && echo "$one" && break; done)
[ -n "$rustlib" ] || die "libstd-rust-web-dev has its library elsewhere than expected"
ln -s "../../$rustlib" "$work/rust/lib/rustlib"
# Programs for this machine, such as build scripts, are built with the same sysroot.
own=$(rustc --print sysroot)/lib/rustlib/$(uname -m)-unknown-linux-gnu
[ -e "$work/$rustlib/$(uname -m)-unknown-linux-gnu" ] || ln -s "$(readlink -f "$own")" "$work/$rustlib/$(uname -m)-unknown-linux-gnu"
rm -rf "$work/apt" "$work/log" "$work/usr/share/doc" "$work/usr/share/man"
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "they are in $out"
echo "$out"
