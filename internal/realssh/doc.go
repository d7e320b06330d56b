// Package realssh finds the user's own ssh, and lets it take this program's place.
//
// This program may be in PATH under ssh's name itself: as a link, or as a script that runs
// `gpg-bridge ssh "$@"`. A link is the same file. A script cannot be told by reading it, so it
// is asked: [IsAsked] makes `gpg-bridge ssh -V` answer for this program, where any ssh prints its
// version. Other programs are asked only where there is a reason to, since that takes some
// milliseconds. What gives no true answer still leads to the real ssh: an environment variable
// names the scripts that were run as ssh, and what is found below prefers any other to them. It
// also counts how many of this program have run an ssh, which ends a loop without a script.
package realssh
