package realssh

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// variable is the environment variable that is set for every ssh that this program runs: to
// asked, or to how many of this program have run one and, as in PATH, which of those were
// scripts.
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

// traces are what this program's runs above this one have left.
type traces struct {
	depth   int      // how many of them have run an ssh
	scripts []string // those that were scripts
}

func tracesIn(environ []string) (t traces) {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			depth, scripts, _ := strings.Cut(value, string(os.PathListSeparator))
			n, _ := strconv.Atoi(depth)
			return traces{max(n, 0), filepath.SplitList(scripts)}
		}
	}
	return traces{}
}

// split parts the candidates that led here from the others. A script that was run as ssh, and
// by which this program was run again, most likely runs this program, whatever it answers; a
// program that is no script may be the real ssh, whose ProxyCommand has led here.
func (t traces) split(candidates []string) (others, led []string) {
	for _, path := range candidates {
		if slices.Contains(t.scripts, path) && mayBeScript(path) {
			led = append(led, path)
		} else {
			others = append(others, path)
		}
	}
	return others, led
}

// with is the environment for an ssh.
func (t traces) with(path string) []string {
	value := []string{strconv.Itoa(t.depth + 1)}
	value = append(value, t.scripts...)
	if mayBeScript(path) && !slices.Contains(t.scripts, path) {
		value = append(value, path)
	}
	return append(Without(os.Environ()), variable+"="+strings.Join(value, string(os.PathListSeparator)))
}

// A LoopError says that what is called ssh runs this program again and again.
type LoopError struct{}

func (*LoopError) Error() string { return "the program ssh runs gpg-bridge ssh again and again" }

// Hint says what to do.
func (*LoopError) Hint() string {
	return "see which program `command -v ssh` names, and have OpenSSH's own behind it in PATH"
}
