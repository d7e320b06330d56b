# Finds out where gpg has its home in the account's login shell, for any POSIX sh; see
# prepare.sh. Go puts the variable mark before it. The login shell prints the answer,
# after its start-up files. These may print anything, start programs that keep their
# output open, and take long.
ask="sh -c 'echo; echo \"$mark login \${GNUPGHOME:-\$HOME/.gnupg}\"'"
printf '\n%s plain %s\n' "$mark" "${GNUPGHOME:-$HOME/.gnupg}"
exec 2>/dev/null
case ${SHELL##*/} in
bash | zsh | fish | ksh | ksh93 | mksh | oksh | yash | dash | ash | sh) kind=sh ;;
tcsh | csh) kind=csh ;;
*) exit 0 ;;
esac

# tree PID...: prints those of these processes that still run, with all their
# descendants.
tree() {
	ps -A -o pid= -o ppid= | awk -v tops="$*" '
		{ parent[$1] = $2 }
		END {
			count = split(tops, top, " ")
			for (i = 1; i <= count; i++) if (top[i] in parent) in_tree[top[i]] = 1
			do {
				more = 0
				for (p in parent)
					if (!(p in in_tree) && (parent[p] in in_tree)) { in_tree[p] = 1; more = 1 }
			} while (more)
			for (p in in_tree) print p
		}'
}

# The child ends the timer, as in limited of common.sh. After 5 seconds the start-up
# files are asked to end, so that they can remove their lock files, and a second later
# whatever is left of them is killed. An answer in between does not count. This has to
# work even if nobody reads our output any more: hence the trap, which no child inherits.
trap : PIPE
sleep 5 </dev/null >/dev/null &
timer=$!
{
	case $kind in
	sh) "$SHELL" -l -c "$ask" </dev/null ;;
	csh) # it has no -c together with -l
		"$SHELL" -l <<EOF
$ask
EOF
		;;
	esac
	kill $timer
} &
child=$!
if wait $timer; then
	printf '\n%s hung\n' "$mark"
	pids=$(tree $child)
	kill -HUP $pids
	kill -TERM $pids
	sleep 1 </dev/null >/dev/null
	pids=$(tree $pids)
	[ -z "$pids" ] || kill -9 $pids
fi
wait $child
printf '\n%s end\n' "$mark"
