# Every script of dev/ and tools/ sources it (`. dev/env.sh`): it says where the project keeps what it builds once, and
# which toolchains it uses. It changes only the environment, and can be sourced twice.

HANGAR_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Survives `make clean` and new clones: the control plane's programs, wasmtime, toolchains that the system lacks. A hash
# of their sources names the directories in it.
HANGAR_CACHE_DIR=${HANGAR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hangar}
export HANGAR_ROOT HANGAR_CACHE_DIR

# What users get, and what tests of the whole run: targets of the build.
HANGAR_PROGRAMS=(hangar hangar-compile hangar-guest hangar-node hangar-node-fetch)

# The processor that hangar is built for: x86_64, or aarch64. For another machine's, dev/sysroot.sh fetches what compilers need.
HANGAR_ARCH=${HANGAR_ARCH:-$(uname -m)}
export HANGAR_ARCH

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

# For crates: tells cargo, and the compilers of C that they call, for which processor they build. Sets rust_target to cargo's
# arguments, rust_output to where, below its target directory, a release build ends, and binutils to the prefix of ld and the like.
for_processor() {
  rust_target=() rust_output=release binutils=
  if [ "$HANGAR_ARCH" = "$(uname -m)" ]; then return; fi
  binutils=$HANGAR_ARCH-linux-gnu-
  local triple=$HANGAR_ARCH-unknown-linux-gnu sysroot
  sysroot=$("$HANGAR_ROOT/dev/sysroot.sh")
  rust_target=(--target "$triple") rust_output=$triple/release
  export "CC_${triple//-/_}=clang-19" "CFLAGS_${triple//-/_}=--target=$HANGAR_ARCH-linux-gnu --sysroot=$sysroot"
  # Debian's compiler, and others that have no standard library of that processor: Debian's, beside the machine's own.
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then export RUSTFLAGS="${RUSTFLAGS:-} --sysroot=$sysroot/rust"; fi
}

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
