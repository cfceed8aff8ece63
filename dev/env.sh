# Sourced by every script of dev/ and tools/ (`. dev/env.sh`): where the project keeps what it builds
# once, and which toolchains it uses. Changes nothing but the environment; safe to source twice.

HANGAR_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Survives `make clean` and new clones: the control plane's programs, wasmtime, toolchains that the
# system lacks. Directories in it are named by a hash of what they were built from.
HANGAR_CACHE_DIR=${HANGAR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hangar}
export HANGAR_ROOT HANGAR_CACHE_DIR

# How many compilers run at once.
HANGAR_JOBS=${HANGAR_JOBS:-$(nproc)}
export HANGAR_JOBS

# Compiled objects are shared between clones: ccache sees paths relative to the clone.
export CCACHE_BASEDIR=$HANGAR_ROOT CCACHE_NOHASHDIR=1

# dev/setup.sh puts a toolchain into the cache only if the system has none that is new enough, so a
# toolchain there wins. The other two are the usual places that a login shell may not have on PATH.
for hangar_dir in "$HOME/.cargo/bin" /usr/local/go/bin "$HANGAR_CACHE_DIR/toolchain/bin"; do
  case ":$PATH:" in
    *":$hangar_dir:"*) ;;
    *) if [ -d "$hangar_dir" ]; then PATH=$hangar_dir:$PATH; fi ;;
  esac
done
unset hangar_dir
export PATH

# Output of one command, for people: progress goes to stderr, so that stdout stays for results.
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
if [ ! -t 2 ]; then say() { printf '==> %s\n' "$*" >&2; }; fi

# What the linker is told so that programs of Kubernetes know their version, for the module of the current directory.
# Without it they call themselves v0.0.0-master+$Format:%H$, which clients cannot parse.
kubernetes_version_flags() {
  local version minor package
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=${version#v1.} minor=${minor%%.*}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s' "$package.gitVersion=$version" "$package.gitMajor=1" "$package.gitMinor=$minor" "$package.gitTreeState=archive" \
      "$package.gitCommit=unknown" "$package.buildDate=1970-01-01T00:00:00Z"
  done
}

# build_go_program DIRECTORY OUT PACKAGE [LDFLAGS]: of the module there. A build that is interrupted leaves no half of a program; descriptor 9,
# the lock of the script that builds, stays its own.
build_go_program() {
  (cd "$1" && go build -p "$HANGAR_JOBS" -mod=readonly -buildvcs=false -ldflags "-s -w ${4:-}" -o "$2.new" "$3") 9>&-
  mv "$2.new" "$2"
}
