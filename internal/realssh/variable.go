package realssh

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// variable is the environment variable that is set for every ssh that this program runs: to
// how many of this program have run one, or to asked.
const (
	variable = "GPG_BRIDGE_SSH"
	asked    = "?"
)

// mostDepth is how many of this program may have run an ssh above another. More than two need
// jump hosts, each reached by an ssh of its own.
const mostDepth = 16

// Answer is what this program prints on stdout, without a line's end, when it is asked.
const Answer = "this is gpg-bridge"

// IsAsked reports whether `gpg-bridge ssh -V` was run to find out whether it is this program,
// and has to print [Answer].
func IsAsked() bool { return os.Getenv(variable) == asked }

// Without returns an environment without what this package puts into it.
func Without(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, variable+"=")
	})
}

// depth is how many of this program have run an ssh above this one.
func depth(environ []string) int {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			n, _ := strconv.Atoi(value)
			return max(n, 0)
		}
	}
	return 0
}

// A LoopError says that what is called ssh runs this program again and again.
type LoopError struct{}

func (*LoopError) Error() string { return "the program ssh runs gpg-bridge ssh again and again" }

// Hint says what to do.
func (*LoopError) Hint() string {
	return "see which program `command -v ssh` names, and have OpenSSH's own behind it in PATH"
}
