package hostkey

import (
	"errors"
	"fmt"
	"strings"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// Reason is why a host key was refused.
type Reason int

// The reasons. As in ssh, a key is also Changed if only keys of other types are known.
const (
	Unknown Reason = iota
	Changed
	Revoked
	Weak
)

// errNoUserFile says why an unknown key is refused, whatever StrictHostKeyChecking is.
var errNoUserFile = errors.New("UserKnownHostsFile is none")

// An Error says that the server's key was refused. By then nothing has been sent to it
// that is meant for the right host only.
type Error struct {
	Reason      Reason
	Host        string // as it stands in known_hosts: host, [host]:port or the HostKeyAlias
	KeyType     string // "ED25519"
	Fingerprint string // "SHA256:…"
	File        string // the line that decided, or where the key would be added
	Line        int    // 0 if no line decided
	Err         error  // details, may be nil

	// For ssh's words: StrictHostKeyChecking, the user's first file, and the type of the
	// key in the line that decided.
	Strict        config.Strictness
	UserFile      string
	OffendingType string
}

func (e *Error) Error() string {
	text := fmt.Sprintf(e.problem(), e.KeyType, usertext.Line(e.Host))
	if e.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	text += ", it showed " + e.Fingerprint
	if e.Err != nil {
		text += ": " + usertext.Quoted(strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	}
	return text
}

func (e *Error) problem() string {
	switch e.Reason {
	case Changed:
		return "the %s host key of %s HAS CHANGED, another one is known"
	case Revoked:
		return "the %s host key of %s is revoked"
	case Weak:
		return "the %s host key of %s is too weak"
	}
	return "the %s host key of %s is not known"
}

func (e *Error) Unwrap() error { return e.Err }

// SSHSays is usertext.Spoken (check_host_key and verify_host_key in sshconnect.c).
func (e *Error) SSHSays() (words []usertext.Message, complete bool) {
	verdict := usertext.Message{Level: usertext.Fatal, Text: "Host key verification failed."}
	var why string
	switch {
	case e.Reason == Weak:
		return []usertext.Message{{Level: usertext.Fatal, Text: "Bad server host key: Invalid key length"}}, false
	case e.Reason == Changed && e.Line > 0:
		why, complete = e.changedWords(), e.Err == nil && e.Strict != config.StrictNo
	case e.Reason == Revoked && e.Err != nil:
		why, complete = fmt.Sprintf("Host key %s %s revoked by file %s", e.KeyType, e.Fingerprint, usertext.Line(e.File)), true
	case e.Reason == Revoked:
		why = e.revokedWords()
	case e.Reason == Unknown && e.Strict == config.StrictYes:
		why = fmt.Sprintf("No %s host key is known for %s and you have requested strict checking.", e.KeyType, usertext.Line(e.Host))
	}
	if why != "" {
		words = []usertext.Message{{Level: usertext.Error, Text: why}}
	}
	return append(words, verdict), complete
}

// changedWords is warn_changed_key and what follows it in check_host_key.
func (e *Error) changedWords() string {
	const frame = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
	host, text := usertext.Line(e.Host), frame+
		"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"+frame+
		"IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n"+
		"Someone could be eavesdropping on you right now (man-in-the-middle attack)!\n"+
		"It is also possible that a host key has just been changed.\n"+
		fmt.Sprintf("The fingerprint for the %s key sent by the remote host is\n%s.\n", e.KeyType, e.Fingerprint)+
		"Please contact your system administrator.\n"
	if e.UserFile != "" {
		text += "Add correct host key in " + usertext.Line(e.UserFile) + " to get rid of this message.\n"
	}
	text += fmt.Sprintf("Offending %s key in %s:%d", e.OffendingType, usertext.Line(e.File), e.Line)
	if e.Strict != config.StrictNo {
		text += "\nHost key for " + host + " has changed and you have requested strict checking."
	}
	return text
}

func (e *Error) revokedWords() string {
	const frame = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
	host, text := usertext.Line(e.Host), frame+
		"@       WARNING: REVOKED HOST KEY DETECTED!               @\n"+frame
	text += fmt.Sprintf("The %s host key for %s is marked as revoked.\n", e.KeyType, host) +
		"This could mean that a stolen key is being used to\nimpersonate this host."
	if e.Strict != config.StrictNo {
		text += fmt.Sprintf("\n%s host key for %s was revoked and you have requested strict checking.", e.KeyType, host)
	}
	return text
}

// Hopeless is true: see link.Hopeless.
func (e *Error) Hopeless() bool { return true }

// Hint says what to do.
func (e *Error) Hint() string {
	switch {
	case e.Reason == Changed:
		return "someone may be listening in; only if the host was really given a new key: ssh-keygen " +
			e.keygenFile() + "-R " + usertext.ShellWord(e.Host)
	case e.Reason == Revoked:
		return "a stolen key may be in use: ask the host's administrator, and do not connect"
	case e.Reason == Weak:
		return "the host needs another key, such as an ed25519 one, or RSA with more bits"
	case errors.Is(e.Err, errNoUserFile):
		return "name a file in UserKnownHostsFile (/dev/null keeps nothing), or add the key to a GlobalKnownHostsFile"
	case errors.Is(e.Err, usertext.ErrNoPrompt):
		return "connect once without BatchMode and compare the fingerprint with the host's"
	}
	return "compare the fingerprint with the host's, then connect with StrictHostKeyChecking=ask and say yes"
}

func (e *Error) keygenFile() string {
	if e.File == "" {
		return ""
	}
	return "-f " + usertext.ShellWord(e.File) + " "
}
