# shellcheck shell=bash
# Runs a program on the host or inside a private root (bubblewrap), with the caller's files, working
# directory and the few environment variables that are meant to reach it. Sourced by ./dev.

# The variables that reach the program. All else stays outside, so that a result does not depend on it.
readonly passed_names='^(HOME|TERM|COLUMNS|NO_COLOR|CI|XDG_[A-Z_]+|PACELINE_[A-Z0-9_]+|((http|https|ftp|all|no)_proxy)|((HTTP|HTTPS|FTP|ALL|NO)_PROXY)|SSL_CERT_FILE|SSL_CERT_DIR|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|PIP_CERT|PIP_CLIENT_CERT)$'

# set_environment [NAME=VALUE...]: fills `environment` with NAME=VALUE words.
set_environment() {
  local name
  environment=(LANG=C.UTF-8)
  while IFS= read -r name; do
    environment+=("$name=${!name}")
  done < <(awk 'BEGIN { for (n in ENVIRON) print n }' | grep -E "$passed_names" | LC_ALL=C sort)
  environment+=("$@")
}

# choose_place NAME: sets place to `host` or `private` and, for the latter, root_version.
choose_place() {
  case ${PACELINE_ROOT:-} in
    host) place=host ;;
    private) place=private ;;
    '') if host_has "$1"; then place=host; else place=private; fi ;;
    *) die 2 "PACELINE_ROOT is \"$PACELINE_ROOT\"; it may be host or private" ;;
  esac
  if [ "$place" = private ]; then
    need_namespaces
    use_root "$1"
    root_id=$(basename "$root_version")
  else
    root_id=host
  fi
}

# host_has NAME: can this host itself build (core) and test (test)? The cheap questions come first.
host_has() {
  { have pkg-config && pkg-config --exists 'llama >= 0.7'; } 2>/dev/null || return 1
  { have cmake && have ninja && have ccache && have g++ && have python3; } || return 1
  pkg-config --exists spdlog yaml-cpp libcurl libcrypto nlohmann_json || return 1
  local headers='expected flat_map generator mdspan print CLI/CLI.hpp minja/minja.hpp gguf.h'
  if [ "$1" = test ]; then
    { have clang-format-21 && have shellcheck && have llama-bench; } || return 1
    headers+=' gtest/gtest.h gmock/gmock.h rapidcheck.h nlohmann/json-schema.hpp'
  fi
  local header
  for header in $headers; do printf '#include <%s>\n' "$header"; done |
    sed 's/.*<\(.*\)>/#if !__has_include(<\1>)\n#error\n#endif/' |
    g++ -std=c++23 -E -x c++ - >/dev/null 2>&1
}

# How bwrap may be used here: with a process namespace (nothing outlives the program) where possible.
need_namespaces() {
  have bwrap || need_root_tools
  if bwrap --ro-bind / / --unshare-pid --proc /proc true 2>/dev/null; then
    process_args=(--unshare-pid --proc /proc)
  elif bwrap --ro-bind / / true 2>/dev/null; then
    process_args=(--ro-bind /proc /proc)
  else
    bwrap --ro-bind / / true || true
    die 3 "this host lets $(id -un) neither mount nor make a user namespace, so the private root cannot be" \
      "entered. In a container: allow it (docker run --privileged); on Ubuntu:" \
      "sysctl kernel.apparmor_restrict_unprivileged_userns=0. Or install the libraries of" \
      "tools/root/packages-core.txt on the host and set PACELINE_ROOT=host"
  fi
}

# want ro|rw HOST [INSIDE]: this host path is to be seen inside, though it lies where the root's files are.
want() {
  [ -e "$2" ] || return 0
  wants+=("${3:-$2}")
  want_args+=("$([ "$1" = ro ] && echo --ro-bind || echo --bind)" "$2" "${3:-$2}")
}

in_system_folder() { case $1 in /usr/* | /etc/* | /var/*) return 0 ;; *) return 1 ;; esac; }

# want_if_hidden PATH: the caller's PATH, where the root has nothing (or an empty folder) at that place.
want_if_hidden() {
  local path there
  for path in "$1" "$(readlink -f "$1")"; do
    in_system_folder "$path" || continue
    there=$root_version/tree$path
    if [ ! -e "$there" ] || { [ -d "$there" ] && [ -z "$(ls -A "$there")" ]; }; then want rw "$path"; fi
  done
}

# lay PATH: the root's PATH, read-only; opened up into its entries where a wanted path lies below it and
# has no mount point there.
lay() {
  local path=$1 tree=$root_version/tree inner entry open=no
  for inner in "${wants[@]}"; do
    case $inner in "$path"/*) [ -e "$tree$inner" ] || open=yes ;; esac
  done
  if [ "$open" = no ]; then
    box+=(--ro-bind "$tree$path" "$path")
    return
  fi
  box+=(--dir "$path")
  for entry in "$tree$path"/* "$tree$path"/.[!.]*; do
    if [ -L "$entry" ]; then
      box+=(--symlink "$(readlink "$entry")" "${entry#"$tree"}")
    elif [ -d "$entry" ]; then
      lay "${entry#"$tree"}"
    elif [ -e "$entry" ]; then
      box+=(--ro-bind "$entry" "${entry#"$tree"}")
    fi
  done
}

# set_box [ARG...]: fills `box` with the bwrap command for root_version. Absolute paths among the
# program's arguments are made visible too.
set_box() {
  local tree=$root_version/tree entry name value arg
  wants=() want_args=()
  wanted_files
  want rw /var/tmp
  for value in "$PWD" "$(pwd -P)" "$checkout" "${HOME:-/}" "$root_version"; do want_if_hidden "$value"; done
  for name in "${environment[@]}"; do
    case $name in XDG_*=/*) want_if_hidden "${name#*=}" ;; esac
  done
  for arg in "$@"; do
    arg=${arg#*=}
    case $arg in /*) ;; *) continue ;; esac
    if [ -e "$arg" ]; then want_if_hidden "$arg"; else want_if_hidden "$(dirname "$arg")"; fi
  done

  box=("$(command -v bwrap)" --die-with-parent)
  for entry in usr etc var; do lay "/$entry"; done
  for entry in "$tree"/*; do
    if [ -L "$entry" ]; then box+=(--symlink "$(readlink "$entry")" "/${entry##*/}"); fi
  done
  # Every other folder is the host's.
  for entry in /*; do
    case $entry in
      /usr | /etc | /var | /dev | /proc | /sys | /boot | /lost+found) continue ;;
    esac
    [ -L "$tree$entry" ] && continue
    if [ -L "$entry" ]; then
      case $(readlink "$entry") in usr/* | /usr/*) continue ;; esac
      box+=(--symlink "$(readlink "$entry")" "$entry")
    elif [ -d "$entry" ]; then
      box+=(--bind "$entry" "$entry")
    fi
  done
  box+=(--dev-bind /dev /dev --ro-bind /sys /sys "${process_args[@]}")
  box+=("${want_args[@]}" --remount-ro / --chdir "$PWD")
}

# Host files that the program needs inside: names, users, time zone, pip's configuration, trusted certificates.
wanted_files() {
  local file bundle
  for file in resolv.conf hosts hostname localtime passwd group pip.conf; do
    want ro "$(readlink -f "/etc/$file")" "/etc/$file"
  done
  # The trust store is the host's, so that a certificate added there counts inside.
  if [ -f /etc/ssl/certs/ca-certificates.crt ] && [ ! -L /etc/ssl/certs/ca-certificates.crt ]; then
    want ro /etc/ssl/certs
    want ro /usr/share/ca-certificates
    want ro /usr/local/share/ca-certificates
  else
    for bundle in /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem \
      /etc/ssl/certs/ca-certificates.crt; do
      [ -f "$bundle" ] || continue
      want ro "$(readlink -f "$bundle")" /etc/ssl/certs/ca-certificates.crt
      break
    done
  fi
  for file in SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT PIP_CLIENT_CERT; do
    file=${!file:-}
    in_system_folder "$file" || continue
    case " ${wants[*]} " in *" $file "*) continue ;; esac
    case $file in /etc/ssl/certs/*) [ -e "$root_version/tree$file" ] && continue ;; esac
    want ro "$(readlink -f "$file")" "$file"
  done
}

# inside SIGNALS CMD...: becomes CMD in the chosen place; set_environment comes before. bwrap ignores
# SIGNALS, or it would kill a program that is about to write its results; CMD gets the default back.
# The variables go around bwrap's command line, which every user can read with ps.
inside() {
  local signals=$1
  shift
  exec 9>&-
  if [ "$place" = host ]; then exec env -i "PATH=$PATH" "${environment[@]}" "$@"; fi
  # shellcheck disable=SC2086 # a list of signal names
  trap '' $signals
  set_box "$@"
  exec env -i PATH=/usr/bin:/usr/sbin "PACELINE_ROOT_PACKAGES=$root_version/packages.tsv" "${environment[@]}" \
    "${box[@]}" -- /usr/bin/env "--default-signal=${signals// /,}" "$@"
}

# run_inside CMD...: as a job; ./dev stays and hands signals on.
run_inside() { run_job inside 'INT TERM HUP' "$@"; }

# become CMD...: the caller's own program. With a terminal it takes the place of ./dev, so that it can
# read keys and be suspended; else ./dev stays, because only so a signal sent to ./dev alone arrives.
become() {
  local rc=0
  if [ -t 0 ]; then inside INT "$@"; fi
  run_inside "$@" || rc=$?
  exit "$rc"
}
