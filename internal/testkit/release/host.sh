#!/bin/sh
# A host of another Debian release, as a folder: its own gnupg, OpenSSH and git.
#   host.sh build [--go-on] [SUITE …]    debootstrap what is not there yet, 40 s and 400 MB each;
#                                        by default $GPG_BRIDGE_HOSTS, or trixie
#   host.sh run SUITE PROGRAM [ARG …]    a program in it, as who calls, in the same network
# The folders are kept in $GPG_BRIDGE_HOSTS_DIR, by default /var/cache/gpg-bridge/hosts.
# It takes root, and a Debian whose own mirror has the suite. With --go-on what
# cannot be built is said, and is no failure: the tests say what they lack.
#
# A program runs in a mount namespace of its own, so that what is mounted for it
# is gone with its last process, however that ends. It sees the host's files
# read-only, and of this machine: /tmp, /home, the accounts and /dev.
set -eu
PATH=$PATH:/usr/sbin:/sbin
hosts=${GPG_BRIDGE_HOSTS_DIR:-/var/cache/gpg-bridge/hosts}
self=$(cd "$(dirname "$0")" && pwd)/host.sh

ready() { [ -e "$hosts/$1/etc/gpg-bridge-host" ]; }

unable() {
	echo "host.sh: no host of Debian $suite: $1" >&2
	[ "$go_on" = 1 ] || exit 1
}

# mirror prints where apt gets this Debian from.
mirror() {
	apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Identifier: Packages' |
		awk -v name="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" '$1 == name { print $2; exit }'
}

build() {
	[ "$(id -u)" = 0 ] || { unable "it takes root to build one"; return 0; }
	command -v apt-get >/dev/null || { unable "it takes a Debian to build one"; return 0; }
	sh "$(dirname "$self")/../../tools/need.sh" debootstrap:debootstrap || { unable "debootstrap could not be installed"; return 0; }
	from=$(mirror)
	[ -n "$from" ] || { unable "apt does not say where this Debian comes from"; return 0; }
	mkdir -p "$hosts"
	chmod 755 "$hosts"
	echo "building a host of Debian $suite in $hosts/$suite" >&2
	# The namespace takes with it what debootstrap mounts and may leave.
	if ! flock "$hosts" unshare --mount sh "$self" bootstrap "$suite" "$from" >"$hosts/$suite.log" 2>&1; then
		tail -n 5 "$hosts/$suite.log" >&2
		unable "see $hosts/$suite.log"
	fi
}

# bootstrap makes the folder under another name first: what was interrupted is
# not taken for a host. Nothing of it is removed while something is mounted in it.
bootstrap() {
	ready "$1" && return 0 # by another, meanwhile
	new=$hosts/$1.new
	if grep -q " $new/" /proc/self/mounts; then
		echo "something is mounted in $new" && exit 1
	fi
	rm -rf --one-file-system "$new"
	script=/usr/share/debootstrap/scripts/$1
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
	debootstrap --variant=minbase --include=gnupg,gpg-agent,openssh-server,openssh-client,git,procps "$1" "$new" "$2" "$script"
	chroot "$new" apt-get clean
	rm -rf "$new/var/lib/apt/lists" "$new"/etc/ssh/ssh_host_*
	chroot "$new" sh -c 'gpg --version | head -n 1; ssh -V 2>&1' >"$new/etc/gpg-bridge-host"
	umount "$new/proc" 2>/dev/null || true
	mv "$new" "$hosts/$1"
}

run() {
	ready "$1" || { echo "host.sh: no host of Debian $1 in $hosts: sh $self build $1" >&2 && exit 1; }
	[ "$(id -u)" = 0 ] || { echo "host.sh: it takes root to run something in a host of Debian $1" >&2 && exit 1; }
	exec unshare --mount sh "$self" enter "$@"
}

# show makes a path of this machine's visible. useradd(8) puts another file in the place of
# each of /etc's, and may just do so.
show() {
	tries=0
	until mount --bind "$1" "$root$1" 2>/dev/null; do
		tries=$((tries + 1))
		if [ $tries -ge 50 ]; then
			mount --bind "$1" "$root$1"
			return
		fi
		sleep 0.05
	done
}

# enter is run in the namespace.
enter() {
	root=$hosts/$1
	shift
	mount --bind "$root" "$root"
	mount -o remount,bind,ro "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mkdir "$root/run/sshd"
	for path in /tmp /home /etc/passwd /etc/group /etc/shadow; do
		show "$path"
	done
	export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin # not the caller's, who may have us in it
	exec chroot "$root" "$@"
}

verb=$1
shift
case $verb in
build)
	go_on=0
	[ "${1:-}" = --go-on ] && { go_on=1; shift; }
	# shellcheck disable=SC2046 # a list of words
	[ $# -gt 0 ] || set -- $(echo "${GPG_BRIDGE_HOSTS:-trixie}" | tr , ' ')
	for suite; do
		ready "$suite" || build
	done ;;
bootstrap | run | enter) "$verb" "$@" ;;
*) echo "usage: host.sh build [SUITE …] | run SUITE PROGRAM …" >&2; exit 2 ;;
esac
