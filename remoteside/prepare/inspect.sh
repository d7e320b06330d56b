# The inspection of a host, after common.sh. Nothing on the host may change by it: no file,
# no directory's contents, no process.

# find_socket sets $home, $sock and $dir, and $etc to the directory of the host's own
# configuration. Wherever there is a /run/user/UID, gpgconf makes the sockets' directory as
# soon as it is asked for any directory: gnupg in there, and in that one d.HASH unless the
# home is ~/.gnupg (_gnupg_socketdir_internal in GnuPG's common/homedir.c). So it is asked
# only if it has nothing to make; gpg --version makes nothing.
find_socket() {
	home=${GNUPGHOME:-$HOME/.gnupg}
	[ -z "$gpg" ] || home=$(printf '%s\n' "$version" | sed -n 's/^Home: //p')
	etc=/etc/gnupg
	uid=$(id -u)
	for run in /run/gnupg /run /var/run/gnupg /var/run; do
		run=$run/user/$uid
		[ ! -d "$run" ] || break
	done
	if [ -d "$run" ] && [ -O "$run" ]; then
		sockets=$run/gnupg
		if [ ! -e "$sockets" ] || is_private "$sockets"; then
			if [ "$home" != "$HOME/.gnupg" ]; then
				has sha1sum || finish error unnamed
				sockets=$sockets/d.$(printf %s "$home" | home_hash)
			fi
			if [ ! -e "$sockets" ]; then
				sock=$sockets/S.gpg-agent
				dir=$sockets
				return
			fi
		fi
	fi
	locate
	etc=$(dirs sysconfdir)
}

# is_private DIR: succeeds if it is a directory that gpgconf would use.
is_private() {
	[ -O "$1" ] || return 1
	case $(ls -ld "$1" </dev/null 2>/dev/null) in
	d[r-][w-][x-]------*) return 0 ;;
	esac
	return 1
}

# home_hash: prints the first 15 bytes of the input's SHA-1, in z-base-32.
home_hash() {
	sha1sum | awk '{
		for (i = 1; i <= 30; i += 5) {
			n = 0
			for (j = i; j < i + 5; j++) n = n * 16 + index("0123456789abcdef", substr($1, j, 1)) - 1
			for (j = 32768; j >= 1; j /= 32) printf "%s", substr("ybndrfg8ejkmcpqxot1uwisza345h769", int(n / j) % 32 + 1, 1)
		}
	}'
}

# can_make DIR: succeeds if mkdir -p should.
can_make() {
	above=$1
	until [ -z "$above" ] || [ -e "$above" ] || [ -L "$above" ]; do above=${above%/*}; done
	[ -d "${above:-/}" ] && [ -w "${above:-/}" ]
}

# starts_agent: succeeds if to connect to $sock would start an agent: systemd's
# gpg-agent.socket listens there, has started none yet, and nobody else listens there. A
# socket that was removed, and that a forward has replaced, is still listed.
starts_agent() {
	has systemctl && [ -r /proc/net/unix ] || return 1
	unit=$(limited 2 systemctl --user show --property=Listen --property=SubState gpg-agent.socket 3</dev/null 2>/dev/null)
	case $unit,$unit in
	*"Listen=$sock ("*,*SubState=listening*) ;;
	*) return 1 ;;
	esac
	[ "$(awk -v sock="$sock" '$4 == "00010000" && index($0, " " sock) == length($0) - length(sock) { n++ } END { print n + 0 }' /proc/net/unix)" = 1 ]
}

# reading ARG...: gpg with options by which it changes nothing: it takes no lock, makes no
# trustdb, and does not read gpg.conf, which could have it write a log.
reading() { exec "$program" --no-options --lock-never --trust-model always "$@"; }

# open_keys sets $gpg to what lists the host's keys, and fails if there is nothing that
# changes nothing. gpg makes a keyring where there is none, also one that gpg.conf names.
open_keys() {
	program=$gpg
	gpg=reading
	if grep -q '^[[:space:]]*use-keyboxd' "$home/common.conf" "$etc/common.conf" </dev/null 2>/dev/null; then
		[ -d "$dir" ] && has gpg-connect-agent || return 1
		keyboxd=$(dirs keyboxd-socket)
		# before 2.3 there is none, whatever is configured
		[ -z "$keyboxd" ] || { [ -n "$(bounded gpg-connect-agent -S "$keyboxd" /bye)" ]; return; }
	fi
	if grep -q '^[[:space:]]*[a-z-]*keyring' "$home"/gpg.conf* "$etc/gpg.conf" </dev/null 2>/dev/null; then
		return 1
	fi
	[ -s "$home/pubring.kbx" ] || [ -s "$home/pubring.gpg" ] || gpg=:
}

# 1. Where gpg looks for its agent. If the directory is missing, could it be made?
find_socket
if [ -d "$dir" ]; then
	[ -w "$dir" ] || finish error readonly "$sock"
else
	can_make "$dir" || finish error nodir "$sock"
fi

# 2. Who answers there now.
if [ -n "$token" ] && [ -e "$dir/$token" ]; then
	say self "$sock"
else
	who=nobody
	if [ ! -S "$sock" ]; then
		no_socket
	elif ! starts_agent; then
		who_answers
	fi
	case $who in
	own) say own "$pid" "$sock" ;;
	held) say held "$sock" ;;
	*) say ready "$sock" ;;
	esac
fi

# 3. Which keys are missing.
[ -z "$gpg" ] || [ -z "$wanted" ] || ! open_keys || compare
finish done
