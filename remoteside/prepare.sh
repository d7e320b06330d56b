# The preparation of a host, for any POSIX sh. Go puts the variables mark,
# takeover, evict, wanted and trust before it, takes out comments and
# indentation, and makes it the argument of a command. Standard input is a line
# with the marker, and the keys, which are gpg's: every other child gets
# </dev/null.
#
# It speaks in lines that begin with $mark. They start on a new line: rc files
# may have printed something without a line feed.
say() { printf '\n%s %s\n' "$mark" "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }
finish() { say "$@"; exit 0; }
say start

# A non-interactive shell often lacks what macOS and the BSDs add in profiles.
PATH=$PATH:/usr/local/bin:/opt/homebrew/bin:/opt/local/bin:/usr/local/MacGPG2/bin:/usr/pkg/bin
LC_ALL=C
export PATH LC_ALL
umask 077
lf='
'

gpg=gpg
has gpg || gpg=gpg2
has "$gpg" || gpg=
has gpgconf || finish nogpg ${gpg:+gpgconf}

dirs() { gpgconf --list-dirs "$1" </dev/null 2>/dev/null; }
keyring() { "$gpg" --batch --no-tty --no-autostart --no-auto-check-trustdb "$@" </dev/null 2>/dev/null; }

# bounded COMMAND...: its output, and "greeted" if it succeeds, but for no longer
# than 2 seconds. gpg-connect-agent -S fails without a greeting only. Not every
# system has timeout(1). The guard ends its own sleep, so that nothing is left; $!
# is the command before there is a sleep.
bounded() {
	"$@" </dev/null 2>/dev/null &
	child=$!
	{
		trap '[ $! = $child ] || kill -9 $!; exit' TERM
		sleep 2 &
		wait $!
		kill -9 $child
	} </dev/null >/dev/null 2>&1 &
	guard=$!
	wait $child && echo greeted
	kill $guard
	wait $guard
} 2>/dev/null

# nap: a twentieth of a second, or a second where sleep takes whole ones only;
# $waited counts in twentieths.
nap() {
	if sleep 0.05; then
		waited=$((waited + 1))
	else
		sleep 1
		waited=$((waited + 20))
	fi
} </dev/null 2>/dev/null

# is_agent PID: whether it is a gpg-agent that we may signal, on this host. That
# of a zombie has no command line any more.
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

# listening: whether Linux knows a listener at $sock; yes where that is unknown.
listening() {
	[ -r /proc/net/unix ] || return 0
	while read -r num refs proto flags type state inode path; do
		[ "$path" = "$sock" ] && [ "$flags" = 00010000 ] && return 0
	done </proc/net/unix
	return 1
}

# who_answers sets $who: nobody, own (with $pid), or held. A pid that is not an
# agent's on this host is that of an agent whose main socket is forwarded.
who_answers() {
	who=nobody
	if ! has gpg-connect-agent; then
		listening && who=held
		return
	fi
	answer=$(bounded gpg-connect-agent -S "$sock" 'GETINFO restricted' 'GETINFO pid' /bye | sed 9q)
	case $answer in
	'') return ;;
	OK*) who=held; return ;;
	esac
	who=held
	pid=$(printf '%s\n' "$answer" | sed -n 's/^D \([1-9][0-9]*\)$/\1/p' | sed 1q)
	[ -n "$pid" ] && is_agent "$pid" && who=own
}

# evict_agent stops the host's own agent and waits for its end: a dying agent
# removes whatever is at its path. One that is killed does not.
evict_agent() {
	bounded gpg-connect-agent -S "$sock" KILLAGENT /bye >/dev/null
	waited=0
	while [ -S "$sock" ] && is_agent "$pid"; do
		if [ $waited -ge 40 ]; then
			kill -9 "$pid" 2>/dev/null
			return
		fi
		nap
	done
}

# 1. Where gpg looks.
gpgconf --create-socketdir </dev/null >/dev/null 2>&1
sock=$(dirs agent-socket)
case $sock in
*"$lf"*) finish error path ;;
/*/*) ;;
*) finish error path ;;
esac
home=$(dirs homedir)
# gpg makes its home itself, with what belongs into it.
[ -d "$home" ] || [ -z "$gpg" ] || keyring --list-keys >/dev/null
dir=${sock%/*}
[ -d "$dir" ] || mkdir -p "$dir" </dev/null 2>/dev/null
[ -d "$dir" ] || finish error nodir "$sock"
[ -w "$dir" ] || finish error readonly "$sock"

# With no-autostart a gpg that uses keyboxd fails unless it runs already.
if grep -q '^[[:space:]]*use-keyboxd' "$home/common.conf" "$(dirs sysconfdir)/common.conf" </dev/null 2>/dev/null; then
	gpgconf --launch keyboxd </dev/null >/dev/null 2>&1
fi

# 2. What it has.
missing=
if [ -n "$gpg" ]; then
	say version "$("$gpg" --version </dev/null 2>/dev/null | sed -n '1s/.* //p')"
	if [ -n "$wanted" ]; then
		have=$(keyring --with-colons --list-keys $wanted | grep '^fpr:')
		for key in $wanted; do
			case $have in
			*":$key:"*) ;;
			*) missing="$missing $key"; say missing "$key" ;;
			esac
		done
	fi
fi

# 3. Who answers there now.
if [ -S "$sock" ]; then
	who_answers
	case $who in
	held) [ "$takeover" = 1 ] || finish held "$sock" ;;
	own)
		[ "$evict" = 1 ] || finish own "$pid" "$sock"
		evict_agent
		;;
	esac
elif [ -d "$sock" ]; then
	finish error directory "$sock"
elif [ -e "$sock" ]; then
	read -r line <"$sock"
	[ "$line" = '%Assuan%' ] && finish error redirect "$sock"
	finish error file "$sock"
fi
rm -f "$sock" </dev/null 2>/dev/null
if [ -e "$sock" ] || [ -L "$sock" ]; then
	finish error unremovable "$sock"
fi
say ready "$sock"

# 4. The public keys, from standard input.
[ -n "$missing" ] || exit 0
read -r line
"$gpg" --batch --no-tty --no-autostart --status-fd 1 --import 2>&1 |
	sed -n -e "s/^\[GNUPG:\] IMPORT_OK [0-9]* /$mark imported /p" -e "s/^gpg: \(.\{1,300\}\).*/$mark note \1/p"
for line in $trust; do
	case "$missing " in
	*" ${line%%:*} "*) printf '%s\n' "$line" ;;
	esac
done | "$gpg" --batch --no-tty --no-autostart --import-ownertrust >/dev/null 2>&1
finish done
