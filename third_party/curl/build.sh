#!/usr/bin/env bash
# Builds libcurl for a static program: HTTP and TLS by OpenSSL, HTTP/2 by nghttp2, names by c-ares, and nothing else. Those three
# come from Debian. Keeps it in the cache:
#
#   <cache>/curl-<hash>/lib/libcurl.a
#   <cache>/curl-<hash>/include/
#
#   build.sh              build it if it is missing, print the directory
#   build.sh --print-dir  only print the directory, whether or not it exists
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && cat Cargo.toml Cargo.lock; echo "recipe $recipe $HANGAR_ARCH"; clang-19 --version | head -1
  dpkg-query -W libssl-dev libnghttp2-dev libc-ares-dev 2>/dev/null || true)
out=$HANGAR_CACHE_DIR/curl-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/curl.lock"
flock 9
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

command -v cargo >/dev/null || die "no cargo: run dev/setup.sh"
say "building libcurl for static programs (once, takes a minute)"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
# cargo checks what it fetches against Cargo.lock; it is asked where the sources are, not to build them.
source=$(cargo metadata --locked --format-version 1 --manifest-path "$here/Cargo.toml" 9>&- | python3 -c '
import json, pathlib, sys
package = next(p for p in json.load(sys.stdin)["packages"] if p["name"] == "curl-sys")
print(pathlib.Path(package["manifest_path"]).parent / "curl")')
cp -r "$source" "$work/source"
# The crate leaves these directories out, and curl enters them without a question.
mkdir -p "$work/source/docs/examples"
touch "$work/source/docs/CMakeLists.txt" "$work/source/docs/examples/CMakeLists.txt"

off=(BUILD_SHARED_LIBS BUILD_CURL_EXE BUILD_TESTING BUILD_LIBCURL_DOCS BUILD_MISC_DOCS ENABLE_CURL_MANUAL
  CURL_USE_LIBPSL CURL_USE_LIBSSH2 USE_LIBIDN2 CURL_ZLIB CURL_BROTLI CURL_ZSTD)
on=(HTTP_ONLY ENABLE_ARES CURL_USE_OPENSSL USE_NGHTTP2 CMAKE_POSITION_INDEPENDENT_CODE
  CURL_DISABLE_ALTSVC CURL_DISABLE_AWS CURL_DISABLE_COOKIES CURL_DISABLE_DOH CURL_DISABLE_FORM_API CURL_DISABLE_HSTS
  CURL_DISABLE_MIME CURL_DISABLE_NTLM CURL_DISABLE_WEBSOCKETS)
defines=("${off[@]/%/=OFF}" "${on[@]/%/=ON}")
toolchain=()
if [ "$HANGAR_ARCH" != "$(uname -m)" ]; then toolchain=(-DCMAKE_TOOLCHAIN_FILE="$HANGAR_ROOT/cmake/toolchains/$HANGAR_ARCH.cmake"); fi
# The authorities are where Debian's libcurl looks for them.
cmake -S "$work/source" -B "$work/build" -G Ninja "${toolchain[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang-19 \
  -DCMAKE_C_FLAGS="-ffunction-sections -fdata-sections" -DCMAKE_INSTALL_PREFIX="$work/installed" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt -DCURL_CA_PATH=/etc/ssl/certs \
  "${defines[@]/#/-D}" >"$work/log" 2>&1 9>&- || { cat "$work/log" >&2; die "curl cannot be configured"; }
ninja -C "$work/build" -j "$HANGAR_JOBS" --quiet install >"$work/log" 2>&1 9>&- || { cat "$work/log" >&2; die "curl cannot be built"; }
mkdir "$work/lib"
mv "$work/installed/lib/libcurl.a" "$work/lib/"
mv "$work/installed/include" "$work/"
cp "$source/COPYING" "$work/"
rm -rf "$work/source" "$work/build" "$work/installed" "$work/log"
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "libcurl is in $out"
echo "$out"
