# The preparation of a host, after common.sh. If keys are missing, it reads a line with the
# ownertrusts, the keys, and the marker again.

# nap: sleeps for a twentieth of a second, or for a second if sleep(1) knows only whole
# ones, and adds the twentieths to $waited.
nap() {
	if sleep 0.05; then
		waited=$((waited + 1))
	else
		sleep 1
		waited=$((waited + 20))
	fi
} </dev/null 2>/dev/null

# evict_agent stops the host's own agent and waits for its end, because an agent that
# ends removes whatever is at its path by then. One that is killed does not.
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

# 1. Where gpg looks for its agent.
gpgconf --create-socketdir </dev/null >/dev/null 2>&1
locate
home=$(dirs homedir)
# Any command makes gpg create its home, with what belongs there.
[ -d "$home" ] || [ -z "$gpg" ] || keyring 2 --list-keys >/dev/null
[ -d "$dir" ] || mkdir -p "$dir" </dev/null 2>/dev/null
[ -d "$dir" ] || finish error nodir "$sock"
[ -w "$dir" ] || finish error readonly "$sock"
# The local side has just put this file beside its own agent's socket. If it is here,
# this is the same directory, and nothing in it may be stopped, removed or replaced.
[ -z "$token" ] || [ ! -e "$dir/$token" ] || finish self "$sock"

# 2. Who answers there now.
if [ -S "$sock" ]; then
	who_answers
	case $who in
	held) [ "$takeover" = 1 ] || finish held "$sock" ;;
	own)
		[ "$evict" = 1 ] || finish own "$pid" "$sock"
		evict_agent
		;;
	esac
else
	no_socket
fi
if [ -e "$sock" ] || [ -L "$sock" ]; then
	rm -f "$sock" </dev/null 2>/dev/null
	if [ -e "$sock" ] || [ -L "$sock" ]; then
		finish error unremovable "$sock"
	fi
fi
say ready "$sock"

# 3. Which keys are missing. Meanwhile the socket is forwarded.
[ -n "$gpg" ] && [ -n "$wanted" ] || finish done
# With --no-autostart, a gpg that uses keyboxd fails unless keyboxd runs.
if grep -q '^[[:space:]]*use-keyboxd' "$home/common.conf" "$(dirs sysconfdir)/common.conf" </dev/null 2>/dev/null; then
	limited 10 gpgconf --launch keyboxd 3</dev/null >/dev/null 2>&1
fi
compare && finish done

# 4. All keys are read before gpg starts, so that a slow network does not use up its time.
read -r trust
keys=$(sed -n "/^$mark/q;p")
importing() { limited "$importing" "$gpg" --batch --no-tty --no-autostart --quiet --status-fd 1 "$@"; }
{
	importing --import 2>&1 3<<EOF
$keys
EOF
	[ $hung = 0 ] || hung import $keyrings
} | sed -n -e "s/^\[GNUPG:\] IMPORT_OK [0-9]* /$mark imported /p" -e "s/^gpg: \(..*\)/$mark note \1/p" -e "/^$mark hung /p"
[ -n "$trust" ] || finish done
importing --import-ownertrust 3<<EOF >/dev/null 2>&1
$(printf '%s\n' $trust)
EOF
[ $hung = 0 ] || hung import-ownertrust trustdb.gpg
finish done
