# shellcheck shell=bash
# Makes, finds, renews and removes the private Debian roots. Sourced by ./dev after common.sh.
# Knows nothing of builds; how a root is entered is in enter.sh. See README.md for the layout.

readonly root_suite=forky
# Raise when this file makes a root differently from the same package list.
readonly root_layout=1

roots_dir() {
  local cache=${XDG_CACHE_HOME:-}
  # The XDG rules say that a relative path is to be ignored.
  case $cache in /*) ;; *) cache=$HOME/.cache ;; esac
  printf '%s/paceline/roots\n' "$cache"
}

# The packages of root NAME (core, test), one a line, sorted.
root_packages() {
  local lists=("$checkout/tools/root/packages-core.txt")
  if [ "$1" = test ]; then lists+=("$checkout/tools/root/packages-test.txt"); fi
  sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "${lists[@]}" | LC_ALL=C sort -u
}

# The link that names the current version of root NAME.
root_link() {
  local sum
  sum=$({ printf '%s %s\n' "$root_suite" "$root_layout"; root_packages "$1"; } | sha256sum)
  printf '%s/%s-%s\n' "$(roots_dir)" "$1" "${sum:0:12}"
}

root_exists() { [ -d "$(root_link "$1")/tree/usr" ]; }

# use_root NAME: makes it if it is not there, then sets root_version to its directory and marks it as
# in use through fd 8, which the entered program inherits, so that no update removes it meanwhile.
use_root() {
  local link
  link=$(root_link "$1")
  while :; do
    [ -d "$link/tree/usr" ] || make_root "$1" if-missing
    root_version=$(readlink -f "$link")
    { exec 8<"$root_version/in-use"; } 2>/dev/null || continue
    have flock && flock -s 8
    # Removed between looking and locking? Then there is a newer one.
    [ -d "$root_version/tree/usr" ] && break
  done
  touch -c "$root_version/in-use" 2>/dev/null || true
}

# make_root NAME if-missing|renew
make_root() {
  local name=$1 link dir new version log rc=0 hint
  link=$(root_link "$name")
  dir=$(roots_dir)
  mkdir -p "$dir" || die 3 "cannot make $dir; set XDG_CACHE_HOME to a folder that can be written"
  need_root_tools
  take_lock 9 "$dir/.lock" "makes a root"
  if [ "$2" = if-missing ] && [ -d "$link/tree/usr" ]; then
    exec 9>&-
    return
  fi
  remove_unused_roots

  version=$(date -u +%Y%m%dT%H%M%S).$$
  new=$dir/.new-$(basename "$link").$version
  log=$dir/$name.log
  mkdir -p "$new/tree" || die 3 "cannot write to $dir"
  : >"$log"
  : >"$new/in-use"
  # shellcheck disable=SC2064 # the folder of this run
  trap "rm -rf --one-file-system $(printf %q "$new")" EXIT

  say "making the private Debian root \"$name\" in $link" \
    "($(root_packages "$name" | wc -l) packages; once, a minute or two)"
  run_quietly "making root \"$name\"" "$log" debian_tree "$name" "$new/tree" || rc=$?
  if [ "$rc" -ne 0 ] || [ ! -s "$new/tree/packages.tsv" ]; then
    tail -n 15 "$log" >&2
    hint=$(explain_root_failure "$log")
    die 3 "making the root failed${hint:+: $hint} (whole log: $log)"
  fi
  mv "$new/tree/packages.tsv" "$new/packages.tsv"
  prepare_mount_points "$new/tree"

  # Two renames, each atomic: the directory gets its name complete, then the link moves to it.
  mv -T "$new" "$link.$version"
  trap - EXIT
  ln -s "$(basename "$link").$version" "$dir/.link.$$"
  mv -T "$dir/.link.$$" "$link"
  say "root \"$name\" is ready: $(du -sh "$link.$version" | cut -f1), $(wc -l <"$link/packages.tsv") packages"
  remove_unused_roots
  exec 9>&-
}

# debian_tree NAME DIR: the mmdebstrap run. As root the tree is made in place; others make it inside a
# user namespace and unpack it as their own files, so that plain rm can remove it.
debian_tree() {
  exec 9>&-
  local name=$1 dir=$2 packages options
  packages=$(root_packages "$name" | paste -sd,)
  # shellcheck disable=SC2016 # $1 is for the hook's shell
  # A mirror that lags, or a wrong clock, is no reason to fail; signatures are checked all the same.
  options=(--variant=apt --include="$packages" --aptopt='Acquire::Check-Valid-Until "false"'
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
    --customize-hook='chroot "$1" dpkg-query -W -f "\${Package}\t\${Version}\t\${Architecture}\n" >"$1/packages.tsv"')
  local proxy
  if have apt-config; then
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    if [ -n "${proxy:-}" ]; then options+=(--aptopt="Acquire::http::Proxy \"$proxy\""); fi
  fi
  follow_caller
  if [ "$(id -u)" -eq 0 ]; then
    mmdebstrap --mode=root "${options[@]}" "$root_suite" "$dir" \
      ${PACELINE_DEBIAN_MIRROR:+"$PACELINE_DEBIAN_MIRROR"}
  else
    set -o pipefail
    mmdebstrap --mode=unshare --format=tar "${options[@]}" "$root_suite" - \
      ${PACELINE_DEBIAN_MIRROR:+"$PACELINE_DEBIAN_MIRROR"} |
      tar -x -C "$dir" --no-same-owner --exclude='./dev/*'
  fi
}

# In a job: ends the job's process group when ./dev is gone, which after kill -9 could not do it itself.
follow_caller() {
  local group=$BASHPID
  (
    trap '' TERM
    while kill -0 "$group" && kill -0 "$$"; do sleep 1; done
    kill -0 "$$" && exit
    kill -TERM -- "-$group"
    sleep 5
    kill -KILL -- "-$group"
  ) >/dev/null 2>&1 &
}

explain_root_failure() {
  if grep -qiE 'NO_PUBKEY|EXPKEYSIG|not signed|no.*valid.*signature|signatures? couldn|keyring' "$1"; then
    echo "this host's debian-archive-keyring is missing or too old for Debian \"$root_suite\";" \
      "install a newer debian-archive-keyring package"
  elif grep -qiE 'Unable to locate package|has no installation candidate' "$1"; then
    echo "a package of tools/root/packages-*.txt is not in Debian \"$root_suite\""
  elif grep -qiE 'No space left' "$1"; then
    echo "the disk is full (a root takes about 1 GB); XDG_CACHE_HOME moves it to another disk"
  elif grep -qiE 'subuid|newuidmap|unshare' "$1"; then
    echo "no user namespace with several ids; install uidmap and give $(id -un) a range in /etc/subuid and" \
      "/etc/subgid (usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)), or run as root"
  elif grep -qiE 'resolv|connect|timed out|Failed to fetch|Temporary failure' "$1"; then
    echo "the Debian mirror was not reached; check the network, http_proxy, or name a mirror in" \
      "PACELINE_DEBIAN_MIRROR"
  fi
}

# bwrap binds host files over these; a mount point has to exist, and be no link.
prepare_mount_points() {
  local file
  for file in etc/resolv.conf etc/hosts etc/hostname etc/localtime etc/passwd etc/group etc/pip.conf; do
    rm -f "$1/$file"
    : >"$1/$file"
  done
  mkdir -p "$1/usr/local/share/ca-certificates" "$1/var/tmp"
}

# Removes versions that no link names any more, roots unused for 30 days, and what killed runs left
# behind; never one that a program still runs in. Call with the lock held.
remove_unused_roots() {
  local dir entry link
  dir=$(roots_dir)
  rm -rf --one-file-system "$dir"/.old-*
  for entry in "$dir"/.new-* "$dir"/*-*.*.*; do
    [ -d "$entry" ] || continue
    link=${entry%.*.*}
    if [ "$(readlink -f "$link")" != "$entry" ]; then
      remove_version "$entry" ''
    elif [ -n "$(find "$entry/in-use" -mtime +30)" ]; then
      remove_version "$entry" "$link"
    fi || true
  done
}

remove_all_roots() {
  local dir entry
  dir=$(roots_dir)
  [ -d "$dir" ] || return 0
  take_lock 9 "$dir/.lock" "makes a root"
  remove_unused_roots
  for entry in "$dir"/*-*.*.*; do
    [ -d "$entry" ] || continue
    remove_version "$entry" "${entry%.*.*}" || say "$entry stays: a program still runs in it"
  done
  exec 9>&-
}

# remove_version DIR LINK: fails where DIR is in use; LINK may be empty.
remove_version() (
  old=$(dirname "$1")/.old-$(basename "$1")
  exec 6>>"$1/in-use"
  flock -n -x 6 || exit 1
  if [ -n "$2" ]; then rm -f "$2"; fi
  # Out of sight first, so that a killed removal leaves no half root under a root's name.
  mv -T "$1" "$old"
  rm -rf --one-file-system "$old"
)

# Sees to mmdebstrap and its helpers; as root on a Debian-like host it installs them.
need_root_tools() {
  local missing log
  [ "$(uname -s)" = Linux ] || die 3 "a private root works on Linux only. Install the libraries of" \
    "tools/root/packages-core.txt with this system's package manager and set PACELINE_ROOT=host"
  missing=$(missing_root_tools)
  [ -n "$missing" ] || return 0
  if ! have apt-get; then
    die 3 "this host lacks $missing; install these packages, or install the libraries of" \
      "tools/root/packages-core.txt and set PACELINE_ROOT=host"
  elif [ "$(id -u)" -ne 0 ]; then
    die 3 "this host lacks $missing; install with: sudo apt-get install $missing"
  fi
  mkdir -p "$(roots_dir)"
  log=$(roots_dir)/host-tools.log
  : >"$log"
  say "installing on this host with apt-get: $missing (they make and enter the private root)"
  run_quietly "apt-get update" "$log" apt-get -o DPkg::Lock::Timeout=300 update ||
    say "apt-get update failed; trying to install all the same"
  # shellcheck disable=SC2086 # a list of packages
  run_quietly "apt-get install" "$log" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing || true
  missing=$(missing_root_tools)
  if [ -n "$missing" ]; then
    tail -n 15 "$log" >&2
    die 3 "could not install $missing (whole log: $log)"
  fi
}

# The packages to install, in one line; empty if all is there.
missing_root_tools() {
  local missing=() tool
  for tool in mmdebstrap:mmdebstrap bwrap:bubblewrap flock:util-linux; do
    have "${tool%%:*}" || missing+=("${tool##*:}")
  done
  if have apt-get && [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
    missing+=(debian-archive-keyring)
  fi
  printf '%s' "${missing[*]}"
}
