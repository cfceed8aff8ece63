# Every script of dev/ and tools/ sources it (`. dev/env.sh`): it says where the project keeps what it builds once, and
# which toolchains it uses. It changes only the environment, and can be sourced twice.

HANGAR_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Survives `make clean` and new clones: the control plane's programs, wasmtime, toolchains that the system lacks. A hash
# of their sources names the directories in it.
HANGAR_CACHE_DIR=${HANGAR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hangar}
export HANGAR_ROOT HANGAR_CACHE_DIR

# What users get, and what tests of the whole run: targets of the build.
HANGAR_PROGRAMS=(hangar hangar-compile hangar-guest hangar-node hangar-node-fetch)

# How many compilers run at once.
HANGAR_JOBS=${HANGAR_JOBS:-$(nproc)}
export HANGAR_JOBS

# Compiled objects are shared between clones: ccache sees paths relative to the clone.
export CCACHE_BASEDIR=$HANGAR_ROOT CCACHE_NOHASHDIR=1

# dev/setup.sh puts a toolchain into the cache only if the system's own is too old or missing, so a toolchain there
# wins. The other two are usual places that may be missing from a login shell's PATH.
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

# Linker flags that tell programs of Kubernetes their version, for the module of the current directory. Without them
# they call themselves v0.0.0-master+$Format:%H$, which clients cannot parse.
kubernetes_version_flags() {
  local version minor package
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=${version#v1.} minor=${minor%%.*}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s' "$package.gitVersion=$version" "$package.gitMajor=1" "$package.gitMinor=$minor" "$package.gitTreeState=archive" \
      "$package.gitCommit=unknown" "$package.buildDate=1970-01-01T00:00:00Z"
  done
}

# build_go_program DIRECTORY OUT PACKAGE [LDFLAGS]: builds a program of the module there. An interrupted build leaves no
# partial program. The build does not inherit descriptor 9, the calling script's lock.
build_go_program() {
  (cd "$1" && go build -p "$HANGAR_JOBS" -mod=readonly -buildvcs=false -ldflags "-s -w ${4:-}" -o "$2.new" "$3") 9>&-
  mv "$2.new" "$2"
}
