#!/bin/sh
# need.sh [--go-on] PACKAGE:PROGRAM …  installs the Debian packages whose
# programs are missing, as root with apt-get. Elsewhere it says what to install
# and fails, or goes on if told so: tests that lack a program say it themselves.
# "PACKAGE:" alone is looked up as a package.
set -u
PATH=$PATH:/usr/sbin:/sbin
unable=1
[ "$1" = --go-on ] && { unable=0; shift; }
missing=
for want; do
	package=${want%%:*} program=${want#*:}
	if [ -n "$program" ]; then
		command -v "$program" >/dev/null 2>&1 || missing="$missing $package"
	elif command -v dpkg >/dev/null 2>&1; then
		dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
	fi
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
	echo "please install:$missing" >&2
	exit "$unable"
fi
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of words
if ! { apt-get update -q && apt-get install -qy --no-install-recommends $missing; } >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
