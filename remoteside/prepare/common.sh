# What prepare.sh and inspect.sh begin with, for any POSIX sh. Go puts one of them after
# it, and the variables mark, motd, takeover, evict, token, home, wanted and importing
# before it; removes comments and indentation; and makes it the argument of a command.
# Standard input is a line with the marker, then, if $wanted is "-", a line with the wanted
# keys, and then what prepare.sh reads. Every child gets </dev/null, except those that read
# this.
#
# It prints lines that begin with $mark. Each has a line feed before it, because start-up
# files may have printed something without one.
say() { printf '\n%s %s\n' "$mark" "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }
finish() { say "$@"; exit 0; }
say start

# The PATH of a non-interactive shell often lacks what profiles add on macOS and the BSDs.
PATH=$PATH:/usr/local/bin:/opt/homebrew/bin:/opt/local/bin:/usr/local/MacGPG2/bin:/usr/pkg/bin
LC_ALL=C
export PATH LC_ALL
if [ -n "$home" ]; then
	[ -d "$home" ] && [ -O "$home" ] || finish error home "$home"
	export GNUPGHOME="$home"
fi
umask 077
lf='
'

# The message of the day. sshd shows PAM's messages only in the first session of a
# connection, and only if that has no command; so this command has lost them.
# MOTD_SHOWN says that pam_motd(8) had one, and its line in /etc/pam.d/sshd says in
# which files.
message_of_the_day() {
	set -f
	while read -r kind control line || [ -n "$kind" ]; do
		case $kind in
		session | -session) ;;
		*) continue ;;
		esac
		case $control in
		"["*)
			line="$control $line"
			line=${line#*"]"}
			;;
		esac
		module=
		files=
		places=
		for arg in $line; do
			case $module:$arg in
			:pam_motd.so | :*/pam_motd.so) module=motd ;;
			:*) break ;;
			motd:motd=*) files=${arg#motd=} ;;
			motd:motd_dir=*) places=${arg#motd_dir=} ;;
			esac
		done
		[ -n "$module" ] || continue
		if [ -z "$files$places" ]; then
			files=/etc/motd:/run/motd:/usr/lib/motd
			places=/etc/motd.d:/run/motd.d:/usr/lib/motd.d
		fi
		IFS=:
		for file in $files; do
			[ ! -f "$file" ] || { set -- "$@" "$file"; break; }
		done
		set +f
		for place in $places; do
			for file in "$place"/*; do
				[ ! -f "$file" ] || set -- "$@" "$file"
			done
		done
		set -f
		unset IFS
	done </etc/pam.d/sshd
	set +f
	for file; do
		shift
		[ ! -r "$file" ] || set -- "$@" "$file"
	done
	[ $# = 0 ] || awk -v mark="$mark" 'FNR <= 100 { print mark, "motd", substr($0, 1, 500) }' "$@" </dev/null 2>/dev/null
}
if [ "$motd" = 1 ] && [ "$MOTD_SHOWN" = pam ] && [ ! -e "$HOME/.hushlogin" ] && [ -r /etc/pam.d/sshd ]; then
	message_of_the_day
fi

gpg=gpg
has gpg || gpg=gpg2
has "$gpg" || gpg=
has gpgconf || finish nogpg ${gpg:+gpgconf}
if [ -n "$gpg" ]; then
	version=$("$gpg" --version </dev/null 2>/dev/null)
	line=${version%%"$lf"*}
	say version "${line##* }"
fi

dirs() { gpgconf --list-dirs "$1" </dev/null 2>/dev/null; }
# keyring SECONDS ARG...: runs gpg to list keys, for at most that long.
keyring() {
	most=$1
	shift
	limited "$most" "$gpg" --batch --no-tty --no-autostart --no-auto-check-trustdb "$@" 3</dev/null 2>/dev/null
}

# limited SECONDS COMMAND...: runs the command, with descriptor 3 as its input, for at
# most that long; then it is asked to end, and killed a second later. It fails
# if the command does. $hung is 1 if the command had to be ended, else 0. Not every system
# has timeout(1). When the command has ended, the child kills the timer: a trap for
# that could come just before the shell begins to wait, and be too early. A gpg that was
# killed leaves a file beside the lock that it was waiting for.
limited() {
	exec sleep "$1" </dev/null >/dev/null 2>&1 &
	timer=$!
	shift
	{
		trap 'kill $!; sleep 1; kill -9 $!; rm -f "$home"/.[#]lk*".$!"; exit 1' TERM
		"$@" <&3 &
		ended=0
		wait $! || ended=1
		kill $timer 2>/dev/null
		exit $ended
	} &
	child=$!
	hung=1
	wait $timer 2>/dev/null || hung=0
	[ $hung = 0 ] || kill $child
	ended=0
	wait $child || ended=1
	return $ended
}

# locate sets $sock and $dir: where gpg looks for its agent.
locate() {
	sock=$(dirs agent-socket)
	case $sock in
	*"$lf"*) finish error path ;;
	/*/*) ;;
	*) finish error path ;;
	esac
	dir=${sock%/*}
}

# no_socket reports what is at $sock if it is neither a socket nor nothing.
no_socket() {
	[ ! -d "$sock" ] || finish error directory "$sock"
	[ -e "$sock" ] || return 0
	read -r line <"$sock"
	[ "$line" = '%Assuan%' ] && finish error redirect "$sock"
	finish error file "$sock"
}

# bounded COMMAND...: runs it, and prints "greeted" if it succeeds within 2 seconds.
# gpg-connect-agent -S fails only if there is no greeting.
bounded() { limited 2 "$@" 3</dev/null && echo greeted; } 2>/dev/null

# hung COMMAND FILE...: says that this command of gpg's had to be ended, and who holds
# the lock of the first of these files in its home that is locked.
hung() {
	command=$1
	shift
	for lock in "$@"; do
		lock=$home/$lock.lock
		[ -f "$lock" ] || continue
		{ read -r holder; read -r node; } <"$lock"
		say hung "$command" "${holder:-0}" "${node:--}" "$lock"
		return
	done
	say hung "$command"
}

# is_agent PID: succeeds if this is a gpg-agent on this host that we may signal. A zombie
# has no command line, and is none.
is_agent() {
	kill -0 "$1" 2>/dev/null || return 1
	if [ -r "/proc/$1/cmdline" ]; then
		name=$(tr '\000' '\n' <"/proc/$1/cmdline" | sed 1q)
	else
		name=$(ps -p "$1" -o comm= </dev/null 2>/dev/null)
	fi
	case ${name##*/} in
	gpg-agent*) return 0 ;;
	esac
	return 1
}

# listening: succeeds if Linux lists a listener at $sock, and on other systems.
listening() {
	[ -r /proc/net/unix ] || return 0
	while read -r num refs proto flags type state inode path; do
		[ "$path" = "$sock" ] && [ "$flags" = 00010000 ] && return 0
	done </proc/net/unix
	return 1
}

# asked COMMAND: sends it to whoever listens at $sock, and prints the answer.
asked() { bounded gpg-connect-agent -S "$sock" "$1" /bye; }

# who_answers sets $who: nobody, own (with $pid), or held. If $pid is not that of an
# agent on this host, the main socket of an agent elsewhere is forwarded. The pid is asked
# for last, since a bridge may have to start its agent to answer that.
who_answers() {
	who=nobody
	if ! has gpg-connect-agent; then
		listening && who=held
		return
	fi
	case $(asked 'GETINFO restricted' | sed 9q) in
	'') return ;;
	OK*) who=held; return ;;
	esac
	who=held
	pid=$(asked 'GETINFO pid' | sed -n 's/^D \([1-9][0-9]*\)$/\1/p' | sed 1q)
	[ -n "$pid" ] && is_agent "$pid" && who=own
}

keyrings='pubring.kbx pubring.gpg public-keys.d/pubring.db'
# compare: says which of the wanted keys gpg lacks, and succeeds if that is none.
# A wanted key is FINGERPRINT:SIGNATURE,SIGNATURE... as in prepare.Key. It is stale if
# the key here lacks one of these. The import adds them, and keeps those that only the
# key here has.
compare() {
	read -r line
	names=
	if [ "$wanted" = - ]; then
		# too many for a command line: gpg lists all its keys
		read -r wanted
	else
		for key in $wanted; do names="$names ${key%%:*}"; done
	fi
	{
		printf '%s\n' $wanted
		keyring 10 --with-colons --fast-list-mode --list-sigs $names
		[ $hung = 0 ] || hung list-keys $keyrings
	} | awk -F: -v mark="$mark" '
	index($0, mark " hung ") == 1 { hung = $0; exit }
	length($1) >= 40 { want[++n] = $1; signed[n] = $2 }
	$1 == "pub" { key = ""; id = $5; part = "" }
	$1 == "fpr" && key == "" { key = $10; has[key] = 1 }
	$1 == "sub" { part = substr($5, length($5) - 7) }
	$1 == "uid" { part = substr($8, 1, 8) }
	$1 == "uat" { part = "-" }
	($1 == "sig" || $1 == "rev") && $5 == id { has[key part "-" substr($11, 1, 2) "-" $6] = 1 }
	END {
		print ""
		if (hung) print hung
		if (hung) exit
		for (i = 1; i <= n; i++) {
			word = ""
			count = split(signed[i], parts, ",")
			for (j = 1; j <= count; j++) if (!((want[i] parts[j]) in has)) word = "stale"
			if (!(want[i] in has)) word = "missing"
			if (word) print mark, word, want[i]
			if (word) lacks = 1
		}
		print mark, "compared"
		exit lacks
	}'
}
