# What deploy/demo/show.sh and dev/demo.sh print, and how. Sourced; `log` is the file that give_up() shows the end of.
bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
tell() {
  local line
  for line in "$@"; do printf '%s\n' "${line:+  $line}"; done
}
give_up() {
  printf '\nerror: %s\n' "$*" >&2
  printf 'The last lines of %s:\n' "$log" >&2
  tail -n 20 "$log" >&2 || true
  exit 1
}
