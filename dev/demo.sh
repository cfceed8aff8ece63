#!/usr/bin/env bash
# make demo: builds hangar, then shows its four ways of working on a real control plane: a hundred operators
# that sleep, an Airway, a workflow, and nodes. With KUBECONFIG set it uses that cluster, otherwise it starts a
# local control plane and stops it at the end. The show itself is that of `hangar demo`: deploy/demo/show.sh.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh
. deploy/demo/words.sh

state=build/demo

# ---------------------------------------------------------------- preparation

tools=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
modules=(pipeline ring)

# Steps: title, function, seconds that it takes from scratch on two idle cores, alone.
steps=("packages and toolchains:setup:60" "the WebAssembly engine:engine:220" "the control plane:control_plane:160" "hangar:program:165"
  "the modules:guests:60")
setup() { dev/setup.sh; }
engine() {
  third_party/wasmtime/build.sh >/dev/null && third_party/wasmparser/build.sh >/dev/null && third_party/quickjs/build.sh >/dev/null &&
    third_party/lua/build.sh >/dev/null
}
control_plane() { dev/build-tools.sh "${tools[@]}" >/dev/null; }
program() { HANGAR_BUILD_STATUS=1 tools/build.sh hangar hangar-compile hangar-guest; }
guests() { examples/build.sh build/guests "${modules[@]}" >&2; }

# is_there STEP: whether the step was done before, so that it takes only seconds. Each step checks for itself what to do.
is_there() {
  case $1 in
    engine) [ -d "$(third_party/wasmtime/build.sh --print-dir)" ] && [ -d "$(third_party/wasmparser/build.sh --print-dir)" ] &&
      [ -d "$(third_party/quickjs/build.sh --print-dir)" ] && [ -d "$(third_party/lua/build.sh --print-dir)" ] ;;
    control_plane) [ -z "$(dev/build-tools.sh --missing "${tools[@]}")" ] ;;
    program) [ -x build/release/bin/hangar ] ;;
    guests) [ -s build/guests/ring.wasm ] ;;
    setup) command -v clang++-19 >/dev/null ;;
  esac
}

# What each step took when it was last built here, beside the other lane: STEP SECONDS.
last_run=$HANGAR_CACHE_DIR/demo-seconds
remembered() { awk -v step="$1" '$1 == step {print $2}' "$last_run" 2>/dev/null || true; }
remember() { # STEP SECONDS
  mkdir -p "$HANGAR_CACHE_DIR"
  { awk -v step="$1" '$1 != step' "$last_run" 2>/dev/null || true; echo "$1 $2"; } >"$last_run.$1"
  mv "$last_run.$1" "$last_run"
}
seconds_of() {
  local step seconds
  seconds=$(remembered "$1")
  for step in "${steps[@]}"; do
    if [[ $step == *:$1:* ]]; then echo "${seconds:-${step##*:}}"; fi
  done
}
# seconds_of_all: of the missing steps. Lanes run at the same time: the longest counts, if the times of all are remembered.
seconds_of_all() {
  local lane step one sum=0 longest=0
  is_remembered=1
  for lane in "${lanes[@]}"; do
    one=0
    for step in $lane; do
      if [[ " ${missing[*]} " != *" $step "* ]]; then continue; fi
      [ -n "$(remembered "$step")" ] || is_remembered=0
      one=$((one + $(seconds_of "$step")))
    done
    sum=$((sum + one))
    if [ $one -gt $longest ]; then longest=$one; fi
  done
  if [ $is_remembered = 1 ]; then left=$longest; else left=$sum; fi
}
# left_text SECONDS: never 0 minutes, because what takes longer than expected is not done yet.
left_text() {
  local minutes=$((($1 + 59) / 60))
  echo "about $((minutes > 0 ? minutes : 1)) minutes left$([ $is_remembered = 1 ] && echo ", as last time" || echo " on two cores")"
}
title_of() {
  local step
  for step in "${steps[@]}"; do
    if [[ $step == *:$1:* ]]; then echo "${step%%:*}"; fi
  done
}

# lane STEP...: builds them one after the other; what they print is in their logs.
lane() {
  local step
  for step in "$@"; do
    : >"$state/steps/$step.began"
    local began=$SECONDS
    "$step" >"$state/steps/$step.log" 2>&1 || { : >"$state/steps/$step.failed"; return 1; }
    echo $((SECONDS - began)) >"$state/steps/$step.done"
  done
}

# counted STEP: ", 12 of 345", by the last line of its log that says so (ninja's or build-tools.sh's), if there is one.
counted() {
  { grep -oE '^\[[0-9]+/[0-9]+\]|\([0-9]+ of [0-9]+\)' "$state/steps/$1.log" 2>/dev/null || true; } | tail -n 1 | sed -E 's|[][()]||g; s|/| of |; s|^|, |'
}

# live TEXT: the last line of the terminal, in place of the text before; nothing elsewhere. A text that is wider than the
# terminal is cut: the rest of it on a line below would stay.
live() { if [ -t 1 ]; then printf '\r\033[K\033[?7l%s\033[?7h' "${1:+  $1}"; fi; }

# follow_lanes SECONDS: prints a line whenever a step begins and every minute, and on a terminal what is being done each
# second, until all lanes have ended. SECONDS: how long what is missing takes.
follow_lanes() {
  local began=$SECONDS number=1 told=' ' said=$SECONDS shown=$SECONDS step left waiting doing alive=1
  while [ $alive = 1 ]; do
    alive=0
    for lane in "${building[@]}"; do if kill -0 "$lane" 2>/dev/null; then alive=1; fi; done
    waiting=0 doing=''
    for step in "${missing[@]}"; do
      if [ ! -e "$state/steps/$step.began" ]; then
        waiting=$((waiting + $(seconds_of "$step")))
      elif [ ! -e "$state/steps/$step.done" ]; then
        doing+="${doing:+; }$(title_of "$step")$(counted "$step")"
      fi
    done
    left=$(($1 - SECONDS + began))
    if [ $left -lt $waiting ]; then left=$waiting; fi
    left=$(left_text $left)
    for step in engine control_plane program guests; do
      if [ ! -e "$state/steps/$step.began" ] || [[ $told == *" $step "* ]]; then continue; fi
      told+="$step " number=$((number + 1)) said=$SECONDS
      live ''
      tell "$number of ${#steps[@]}: $(title_of "$step")$([[ " ${missing[*]} " != *" $step "* ]] || echo "; $left")"
    done
    if [ -n "$doing" ] && [ $((SECONDS - said)) -ge 60 ]; then
      said=$SECONDS
      live ''
      tell "$left: $doing"
    fi
    if [ -n "$doing" ] && [ $shown != $SECONDS ]; then
      shown=$SECONDS
      live "$left: $doing"
    fi
    for step in "$state"/steps/*.failed; do
      if [ -e "$step" ]; then live '' && log=${step%.failed}.log give_up "$(title_of "$(basename "$step" .failed)"): not built"; fi
    done
    if [ $alive = 1 ]; then sleep 0.3; fi
  done
  live ''
  for step in "${missing[@]}"; do
    if [ -s "$state/steps/$step.done" ]; then remember "$step" "$(cat "$state/steps/$step.done")"; fi
  done
}

# The steps after setup are built in two lanes: each has times with work for one core only, such as linking a large
# program. Both together need some 5 GiB.
building=() missing=()
prepare() {
  heading "Preparing"
  local step left=0 is_remembered lanes=("engine program" "control_plane guests") setup_left=0
  for step in setup engine control_plane program guests; do
    is_there $step || missing+=($step)
  done
  if [ "$(awk '$1 == "MemAvailable:" {print int($2 / 1024)}' /proc/meminfo)" -lt 6000 ]; then lanes=("engine program control_plane guests"); fi
  seconds_of_all
  if [[ " ${missing[*]} " == *" setup "* ]]; then setup_left=$(seconds_of setup); fi
  left=$((left + setup_left))
  if [ $left -gt 100 ]; then
    tell "What is missing is built from source. It is kept; the next time takes seconds. Logs: $state/steps"
  fi
  tell "1 of ${#steps[@]}: $(title_of setup)$([ $left -lt 60 ] || echo "; $(left_text $left)")"
  local began=$SECONDS
  setup
  . dev/env.sh
  if [ $setup_left -gt 0 ]; then remember setup $((SECONDS - began)); fi
  left=$((left - setup_left))
  rm -rf "$state/steps"
  mkdir -p "$state/steps"
  local one
  # Each lane is a process group, so that whatever it has started can be ended.
  set -m
  for one in "${lanes[@]}"; do
    # shellcheck disable=SC2086
    lane $one </dev/null &
    building+=($!)
  done
  set +m
  follow_lanes $left
  building=()
}

cluster='' show=''
clean_up() {
  local lane
  for lane in "${building[@]}"; do kill -- "-$lane" 2>/dev/null || true; done
  # It removes what it made in a cluster that stays.
  if [ -n "$show" ] && kill "$show" 2>/dev/null; then wait "$show" || true; fi
  if [ -n "$cluster" ]; then dev/control-plane.sh down --dir "$cluster"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# Sets `given`, the arguments of the show.
connect() {
  given=(--hangar build/bin/hangar --state "$state")
  if [ -n "${KUBECONFIG:-}" ]; then
    [ -t 0 ] || given+=(--yes)
    return
  fi
  heading "A control plane"
  tell "etcd, kube-apiserver, kube-controller-manager and kube-scheduler, the real ones, on this machine." \
    "The nodes are simulated: pods run in name only, and those of Jobs end by themselves."
  cluster=$(dev/control-plane.sh up --with-kcm --with-scheduler --with-kwok=3 --watch-pid=$$)
  eval "$(dev/control-plane.sh env --dir "$cluster")"
  given+=(--own-cluster)
}

prepare
deploy/demo/install.sh "$state/share" --bin build/bin --guests build/guests
connect
PATH=$(dev/build-tools.sh --print-dir):$PATH
# In the background, so that a signal to this script alone reaches it at once; there, a shell would have it ignore Ctrl-C.
env --default-signal=INT,QUIT "$state/share/demo/show.sh" "${given[@]}" <&0 &
show=$!
status=0
wait "$show" || status=$?
show=''
exit $status
