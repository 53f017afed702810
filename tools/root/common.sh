# shellcheck shell=bash
# What every part of ./dev shares: messages, locks, jobs that get signals and show progress.
# Sourced by ./dev; runs nothing by itself.

say() { printf 'dev: %s\n' "$*" >&2; }

# die STATUS MESSAGE...: 2 = wrong usage, 3 = this machine lacks something or a build failed.
die() {
  local status=$1
  shift
  say "$@"
  exit "$status"
}

have() { command -v "$1" >/dev/null 2>&1; }

# take_lock FD FILE WHAT: exclusive, held until FD is closed. Without flock(1) there is no lock.
take_lock() {
  eval "exec $1>>\"\$2\""
  have flock || return 0
  flock -n "$1" && return 0
  say "waiting for another ./dev that $3 ..."
  flock "$1"
}

# run_job CMD...: runs CMD in a process group of its own and returns its status. INT, TERM and HUP
# reach that group exactly once, whether they were sent to ./dev, to its group, or by Ctrl-C.
# `signalled` is the last signal handed on, or empty.
job='' signalled='' interrupted=no
run_job() {
  local rc=0 first=yes status
  signalled=''
  trap 'hand_on INT' INT
  trap 'hand_on TERM' TERM
  trap 'hand_on HUP' HUP
  set -m
  "$@" &
  job=$!
  set +m
  if [ -n "$signalled" ]; then hand_on "$signalled"; fi
  # A trap ends `wait` early; then wait again. 127 the second time: the first answer was the job's own.
  while :; do
    interrupted=no status=0
    wait "$job" || status=$?
    if [ "$first" = yes ] || [ "$status" -ne 127 ]; then rc=$status; fi
    first=no
    [ "$interrupted" = yes ] || break
  done
  job=''
  trap - INT TERM HUP
  return "$rc"
}

hand_on() {
  signalled=$1 interrupted=yes
  if [ -n "$job" ]; then kill "-$1" -- "-$job" 2>/dev/null || true; fi
}

# run_quietly WHAT LOG CMD...: runs CMD with all its output in LOG; after a second, stderr shows WHAT,
# the time and the log's last line. Ends the script if CMD was interrupted.
run_quietly() {
  local what=$1 log=$2 rc=0 ticker
  shift 2
  set -m
  show_progress "$what" "$log" &
  ticker=$!
  set +m
  run_job "$@" >>"$log" 2>&1 </dev/null || rc=$?
  kill -TERM -- "-$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  leave_if_interrupted
  return "$rc"
}

# After a job: ends the script as the signal would have.
leave_if_interrupted() {
  case $signalled in
    INT) exit 130 ;;
    TERM) exit 143 ;;
    HUP) exit 129 ;;
  esac
}

show_progress() {
  local what=$1 log=$2 start=$SECONDS spent last width=${COLUMNS:-80} every=15
  if [ -t 2 ]; then every=1; fi
  sleep 1
  if [ ! -t 2 ]; then say "$what ..."; fi
  while kill -0 "$$" 2>/dev/null; do
    spent=$((SECONDS - start))
    if [ -t 2 ] || [ "$((spent % every))" -eq 0 ]; then
      last=$(tail -n 1 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | tr -cd '[:print:]') || true
      last="dev: $what: ${spent} s  $last"
      if [ -t 2 ]; then
        printf '\r%s\033[K' "${last:0:$((width - 1))}" >&2
      else
        printf '%s\n' "${last:0:160}" >&2
      fi
    fi
    sleep 1
  done
}
