package remoteside

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// shellCommand is what runs a script from its standard input: a name that means
// the same to every login shell.
const shellCommand = "sh"

// oneWord decodes the script that is its argument. Login shells agree on no way
// of quoting, except for what stands between single quotes and has neither a
// quote, nor a backslash (fish), nor an exclamation mark or a line feed (tcsh).
// So those four go as characters that scripts do without, and awk, which can
// say them by number, gives them back.
const oneWord = `set -- "$(printf %s "$1" | tr "` + standIns + `" "$(awk -v f=%c%c%c%c%c "BEGIN { printf f, 92, 92, 10, 39, 33 }")")"; eval "$1"`

// standIns are for a backslash, a line feed, a quote and an exclamation mark.
// They are in no script, nor in the data of prepareCommand.
const standIns = "~?QZ"

//go:embed prepare.sh
var prepareBody string

// fingerprintForm: an OpenPGP v4 fingerprint has 20 bytes, a v5 or v6 one 32
// (RFC 9580 section 5.5.4).
var fingerprintForm = regexp.MustCompile(`^(?:[0-9A-F]{40}|[0-9A-F]{64})$`)

// newMarker is the beginning of the script's lines. It is random, so that
// nothing that rc files print is taken for one.
func newMarker() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return "gpg-bridge:" + hex.EncodeToString(random[:])
}

// prepareCommand is the preparation as a command for any login shell. Its
// standard input stays its own: to be executed costs one round trip, where a
// script on standard input costs another, since sshd has no window for it
// before the command runs. The fingerprints of the options must have been
// checked.
func prepareCommand(marker string, options PrepareOptions) string {
	var wanted, trust []string
	for _, key := range options.Wanted {
		wanted = append(wanted, key.Fingerprint)
		if key.OwnerTrust > 0 {
			trust = append(trust, fmt.Sprintf("%s:%d:", key.Fingerprint, key.OwnerTrust))
		}
	}
	return commandOf(compact(prepareBody),
		"mark="+quote(marker),
		"takeover="+flag(options.Takeover),
		"evict="+flag(options.Evict),
		"wanted="+quote(strings.Join(wanted, " ")),
		"trust="+quote(strings.Join(trust, " ")))
}

// commandOf is a script with its variables as the argument of oneWord.
func commandOf(body string, variables ...string) string {
	script := strings.Join(variables, "\n") + "\n" + body
	encoded := strings.NewReplacer(`\`, standIns[0:1], "\n", standIns[1:2], "'", standIns[2:3], "!", standIns[3:4]).Replace(script)
	return shellCommand + " -c '" + oneWord + "' " + shellCommand + " '" + encoded + "'"
}

// compact leaves out what is there for the reader: indentation, comments, empty
// lines.
func compact(body string) string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(body, "\r\n", "\n")) {
		if line = strings.TrimLeft(line, "\t"); line != "\n" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// compound puts a script and its variables into one compound command, which the
// shell reads to its end before it runs it. Behind it the input is unread.
func compound(body string, variables ...string) string {
	return "{\n" + strings.Join(variables, "\n") + "\n" + strings.ReplaceAll(body, "\r\n", "\n") + "\nexit\n}\n"
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// quote makes one word of text for sh. Text is free of control characters.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// maxSocketPath is what fits into Linux's sockaddr_un with its NUL (unix(7)).
const maxSocketPath = 107

var (
	errPathRelative = errors.New("not an absolute path")
	errPathLong     = fmt.Errorf("longer than %d bytes", maxSocketPath)
	errPathControl  = errors.New("with a control character")
)

// checkSocketPath refuses what sshd could not bind, or what may not be printed.
func checkSocketPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return errPathRelative
	case len(path) > maxSocketPath:
		return errPathLong
	case hasControl(path):
		return errPathControl
	}
	return nil
}

// hasControl: C0 controls and DEL. The path is bytes to the host, and is quoted
// wherever it is shown.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
