package prepare

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// shellCommand runs a script from its standard input. The name means the same in every
// login shell.
const shellCommand = "sh"

// oneWord decodes and runs the script that is its argument. The only way of quoting
// that all login shells agree on is text between single quotes that has no single quote,
// no backslash (fish), and no exclamation mark or line feed (tcsh). So those four are
// replaced by characters that the scripts do not use, and oneWord replaces them back,
// with the help of awk, which can name them by number.
const oneWord = `set -- "$(printf %s "$1" | tr "` + standIns + `" "$(awk -v f=%c%c%c%c%c "BEGIN { printf f, 92, 92, 10, 39, 33 }")")"; eval "$1"`

// standIns replace a backslash, a line feed, a single quote and an exclamation mark.
// They must not occur in a script, nor in its variables.
const standIns = "~?QZ"

//go:embed common.sh
var commonBody string

//go:embed prepare.sh
var prepareBody string

//go:embed inspect.sh
var inspectBody string

// fingerprintForm is the form of a fingerprint: an OpenPGP v4 fingerprint has 20 bytes, a v5 or v6 one 32
// (RFC 9580 section 5.5.4).
var fingerprintForm = regexp.MustCompile(`^(?:[0-9A-F]{40}|[0-9A-F]{64})$`)

// tokenForm excludes the stand-ins, and whatever means something in a shell or a path.
var tokenForm = regexp.MustCompile(`^[0-9A-PR-Ya-z._-]{1,64}$`)

// signatureForm is the form of Key.SelfSignatures.
var signatureForm = regexp.MustCompile(`^[0-9A-F]{0,8}-[0-9a-f]{2}-[0-9]{1,10}$`)

// newMarker returns what the script's lines begin with. It is random, so that no line
// that start-up files print is taken for one of them.
func newMarker() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return "gpg-bridge:" + hex.EncodeToString(random[:])
}

// commandFor returns the preparation, or the inspection, as a command for any login shell.
// A script on standard input would need one round trip more, since sshd accepts no input
// before the command runs. The options must have been checked.
func commandFor(marker string, options Options) string {
	wanted := options.wantedWords()
	if len(wanted) > maxWantedWord {
		wanted = "-" // on standard input
	}
	return commandOf(compact(options.script()),
		"mark="+quote(marker),
		"motd="+flag(options.MOTD != nil),
		"takeover="+flag(options.Takeover),
		"evict="+flag(options.Evict),
		"token="+quote(options.Token),
		"home="+octal(options.Home),
		"wanted="+quote(wanted),
		"importing="+strconv.Itoa(int(importTimeout(len(options.Wanted)).Seconds())))
}

// script returns the script that the options ask for, without its variables.
func (o *Options) script() string {
	if o.inspect {
		return commonBody + inspectBody
	}
	return commonBody + prepareBody
}

// maxWantedWord is the longest wantedWords that goes into the command, in bytes. To the
// host's kernel the whole command is one argument, of at most 128 KiB on Linux
// (execve(2), MAX_ARG_STRLEN). An SSH packet has at most 256 KiB (OpenSSH's
// PACKET_MAX_SIZE); a longer one ends the connection.
const maxWantedWord = 8 << 10

// wantedWords returns the wanted keys for the script, each as
// FINGERPRINT:SIGNATURE,SIGNATURE...
func (o *Options) wantedWords() string {
	var words strings.Builder
	for _, key := range o.Wanted {
		if words.Len() > 0 {
			words.WriteByte(' ')
		}
		words.WriteString(key.Fingerprint + ":" + strings.Join(key.SelfSignatures, ","))
	}
	return words.String()
}

// trustWords returns the ownertrusts of some keys, as for gpg --import-ownertrust, but
// separated by spaces instead of line feeds.
func (o *Options) trustWords(fingerprints []string) string {
	var words []string
	trust := map[string]int{}
	for _, key := range o.Wanted {
		trust[key.Fingerprint] = key.OwnerTrust
	}
	for _, fingerprint := range fingerprints {
		if trust[fingerprint] > 0 {
			words = append(words, fmt.Sprintf("%s:%d:", fingerprint, trust[fingerprint]))
		}
	}
	return strings.Join(words, " ")
}

// commandOf returns the command that runs a script with its variables, by oneWord.
func commandOf(body string, variables ...string) string {
	script := strings.Join(variables, "\n") + "\n" + body
	encoded := strings.NewReplacer(`\`, standIns[0:1], "\n", standIns[1:2], "'", standIns[2:3], "!", standIns[3:4]).Replace(script)
	return shellCommand + " -c '" + oneWord + "' " + shellCommand + " '" + encoded + "'"
}

// compact removes indentation, comments and empty lines from a script.
func compact(body string) string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(body, "\r\n", "\n")) {
		line = strings.TrimLeft(line, "\t")
		if line != "\n" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// compound makes a script and its variables one compound command, which the shell
// reads to its end before it runs it.
func compound(body string, variables ...string) string {
	return "{\n" + strings.Join(variables, "\n") + "\n" + strings.ReplaceAll(body, "\r\n", "\n") + "\nexit\n}\n"
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// quote quotes text for sh. The text must not contain control characters.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// octal quotes text for sh that may contain stand-ins. It must not end with a line feed.
func octal(text string) string {
	if text == "" {
		return "''"
	}
	var digits strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&digits, `\0%03o`, c)
	}
	return `"$(printf %b '` + digits.String() + `')"`
}

// maxSocketPath is the longest path, in bytes, that fits in Linux's sockaddr_un with its
// NUL (unix(7)).
const maxSocketPath = 107

var (
	errPathRelative = errors.New("not an absolute path")
	errPathLong     = fmt.Errorf("longer than %d bytes", maxSocketPath)
	errPathControl  = errors.New("with a control character")
)

// checkSocketPath refuses a path at which sshd could not listen, or that must not be
// printed.
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

// hasControl reports whether text has a C0 control or DEL. Other bytes are permitted,
// since paths are quoted wherever they are shown.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
