#!/bin/sh
# fuzz.sh FUZZTIME [TARGET …]  runs every fuzz target of the module, or those
# named, for that long (as go test -fuzztime), one after the other. It goes on
# after a failure, and says at the end what failed and where the input that did
# it is: in testdata/fuzz, where it is a test case from then on.
#
# At the end of its time Go's coordinator sometimes calls its own deadline a
# failure (go.dev/issue/75804, until Go 1.26); no input is written then, and
# nothing was found.
set -u
export LC_ALL=C
go=${GO:-go}
time=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM
found=0 failed=

# A package that does not compile has no targets, and is not to be passed over.
targets=$("$go" test -list '^Fuzz' ./...) || { printf '%s\n' "$targets"; exit 1; }
# Fuzz… lines belong to the "ok PACKAGE" line behind them.
targets=$(printf '%s\n' "$targets" | awk '/^Fuzz/ { names[n++] = $1 } $1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')

fuzz() { # PACKAGE TARGET
	echo "== $2 ($1)"
	"$go" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 5s "$1" >"$log" 2>&1 </dev/null
	status=$?
	grep -o 'execs: [0-9]*' "$log" | tail -n 1
	if [ "$status" = 0 ]; then
		return
	elif ! grep -q 'Failing input written to' "$log" && grep -q '^ *context deadline exceeded$' "$log" && ! grep -q panic "$log"; then
		echo 'the time was over'
		return
	fi
	cat "$log"
	input=$(sed -n 's/^ *Failing input written to //p' "$log" | tail -n 1)
	failed="$failed
$2: ${input:+$("$go" list -f '{{.Dir}}' "$1")/}${input:-no input was written: see above}"
}

set -f
while read -r package target; do
	[ -n "$target" ] || continue
	case " $* " in
	"  " | *" $target "*) ;;
	*) continue ;;
	esac
	found=$((found + 1))
	fuzz "$package" "$target"
done <<EOF
$targets
EOF
if [ -n "$failed" ]; then
	printf '\nFAILED, with the input that did it, which is a test case from now on:%s\n' "$failed" >&2
	exit 1
fi
[ "$found" -gt 0 ] || { echo 'no fuzz targets' >&2; exit 1; }
echo "$found fuzz targets, $time each: nothing found"
