package hostkey

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
)

// FuzzKnownHosts: whatever a known_hosts file holds, each line is judged by
// itself, a key counts only where the line's names have the host's, and not
// where they exclude it. KEY in the text stands for a key.
func FuzzKnownHosts(f *testing.F) {
	f.Add("host,[host]:22 KEY\n", "host")
	key := sshkeys.Authorized(sshkeys.Fixed(f, 1))
	f.Fuzz(func(t *testing.T, text, name string) {
		text = strings.ReplaceAll(text, "KEY", key)
		found := keysFor(parseKnownHosts([]byte(text), "f"), name)
		require.LessOrEqual(t, len(found), strings.Count(text, "\n")+1)
		var each []int
		for i, line := range strings.SplitAfter(text, "\n") {
			for range keysFor(parseKnownHosts([]byte(line), "f"), name) {
				each = append(each, i+1)
			}
		}
		require.Equal(t, each, numbersOf(found))
		for _, line := range parseKnownHosts([]byte(text), "f") {
			if literal.MatchString(name) && line.names[0] != '|' {
				require.False(t, matchNames(name, line.names+",!"+name))
			}
		}
	})
}

// literal reports whether a name has no special meaning in a list of patterns.
var literal = regexp.MustCompile(`^[0-9A-Za-z.:\[\]-]{1,200}$`)

func numbersOf(keys []knownKey) []int {
	var numbers []int
	for _, key := range keys {
		numbers = append(numbers, key.number)
	}
	return numbers
}

// FuzzPatternList: a list of patterns matches by its definition, which the test applies
// character by character, and one that ends in the negated name never matches that name.
func FuzzPatternList(f *testing.F) {
	f.Add("host.example", "*.example,!h?st*")
	f.Fuzz(func(t *testing.T, name, list string) {
		if len(name) > 100 || len(list) > 1000 {
			return // ssh has a bound for patterns, of 1023 bytes
		}
		require.Equal(t, listMatches(lowerASCII(name), list), matchPatternList(lowerASCII(name), list))
		require.False(t, matchPatternList(name, list+",!*"))
	})
}

func listMatches(name, list string) bool {
	found := false
	for _, pattern := range strings.Split(list, ",") {
		negated := strings.HasPrefix(pattern, "!")
		pattern = strings.TrimPrefix(pattern, "!")
		if patternMatches(name, lowerASCII(pattern)) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// patternMatches keeps the set of all prefixes of the name that the pattern matches so far.
func patternMatches(name, pattern string) bool {
	reached := make([]bool, len(name)+1)
	reached[0] = true
	for i := range len(pattern) {
		next := make([]bool, len(name)+1)
		for at, ok := range reached {
			switch {
			case !ok:
			case pattern[i] == '*':
				for further := at; further <= len(name); further++ {
					next[further] = true
				}
			case at < len(name) && (pattern[i] == '?' || pattern[i] == name[at]):
				next[at+1] = true
			}
		}
		reached = next
	}
	return reached[len(name)]
}

// FuzzKnownHostsOpenSSH: ssh-keygen -F finds the same lines of the same file
// for the same name. In some cases it reads past the end of a line into the remains of a
// longer one (hostkeys_foreach_file, after a NUL or a last name without a line feed); we
// do not.
func FuzzKnownHostsOpenSSH(f *testing.F) {
	keygen := env.Tool(f, "ssh-keygen")
	file := filepath.Join(f.TempDir(), "known_hosts")
	key := sshkeys.Authorized(sshkeys.Fixed(f, 1))
	f.Add("host,[host]:22 KEY\n", "host")
	f.Fuzz(func(t *testing.T, text, name string) {
		if name == "" || strings.ContainsAny(name, "\x00\n") || len(name) > 200 || len(text) > 1<<16 {
			return
		}
		text = strings.NewReplacer("KEY", key, "\x00", "").Replace(text)
		if last := text[strings.LastIndexByte(text, '\n')+1:]; !strings.ContainsAny(last, " \t") {
			text += "\n"
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), keygen, "-l", "-F", name, "-f", file).Output()
		if status, ok := err.(*exec.ExitError); err != nil && (!ok || status.ExitCode() != 1) {
			t.Skip("ssh-keygen does not want it: ", err)
		}
		require.Equal(t, foundLines(out, name), numbersOf(keysFor(parseKnownHosts([]byte(text), file), name)), "%q in %q", name, text)
	})
}

func foundLines(out []byte, name string) []int {
	var numbers []int
	for line := range bytes.Lines(out) {
		rest, ok := strings.CutPrefix(string(line), "# Host "+name+" found: line ")
		number, err := strconv.Atoi(strings.Fields(rest + " x")[0])
		if ok && err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// FuzzKnownHostEntry: a line that we write is read back as that key of that
// host and of no other.
func FuzzKnownHostEntry(f *testing.F) {
	key := sshkeys.Fixed(f, 1)
	file := filepath.Join(f.TempDir(), "known_hosts")
	f.Add("host", "other", true)
	f.Add("[host]:2222", "host", false)
	f.Fuzz(func(t *testing.T, name, other string, hash bool) {
		if len(name) > 1000 {
			return // ssh has no such names, nor room for them
		}
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		if appendKnownHost(t.Context(), file, knownHost{name: name, key: key}, hash) != nil {
			return
		}
		lines, unreadable := readKnownHosts(t.Context(), []string{file})
		require.Empty(t, unreadable)
		require.Len(t, lines, 1)
		v, _ := check(keysFor(lines, lowerASCII(name)), key)
		require.Equal(t, hostKnown, v)
		if lowerASCII(other) != lowerASCII(name) {
			require.Empty(t, keysFor(lines, lowerASCII(other)))
		}
	})
}
