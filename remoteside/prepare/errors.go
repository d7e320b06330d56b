package prepare

import (
	"errors"
	"fmt"
	"time"
)

const hintRemoteSocket = "--remote-socket PATH forwards to a path of your choice without running anything there"

// A NoShellError says that the account does not run commands: its shell is
// nologin, it has a forced command, or what was printed does not come from a shell.
//
// A forced command may have an effect, and has it again when it is run again. So
// the caller must remember a NoShellError and not prepare the host another time. It
// then returns one that has Known and Again set, or Forced. Unless Echo is set,
// it may also be a shell whose start-up files hang or fail.
type NoShellError struct {
	FirstLine string    // the first line that was printed, not to be trusted; Error quotes it
	Err       error     // how the command ended; may be nil
	Repeats   bool      // FirstLine repeats the command that was to be run; Error leaves it out
	Echo      bool      // it repeats its input, which no shell does
	Known     time.Time // since when this is known, if it was remembered
	Again     time.Time // when the account will be asked again, if it was remembered; zero: never
	Forced    bool      // nothing was run: the user's certificate names a forced command
}

func (e *NoShellError) Error() string {
	text := "the account on the host runs no shell commands"
	switch {
	case e.Forced:
		return text + ": your certificate forces another command"
	case !e.Known.IsZero():
		return text + ", as it turned out on " + e.Known.Format(time.DateOnly)
	}
	switch {
	case e.Repeats:
	case e.FirstLine != "":
		text += fmt.Sprintf("; it says %q", e.FirstLine)
	case e.Err != nil:
		text += ": " + innermost(e.Err).Error()
	}
	return text
}

// innermost returns what err wraps: what wraps the end of a command names the command, which
// is a script that the user has not written.
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

func (e *NoShellError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *NoShellError) Hint() string {
	if e.Known.IsZero() {
		return hintRemoteSocket
	}
	hint := hintRemoteSocket + "; if the account has a shell by now, --takeover asks again"
	if e.Again.IsZero() {
		return hint
	}
	return hint + " at once, and any session does after " + e.Again.Format("2006-01-02 15:04")
}

// An UnstartedError says that the preparation was interrupted before the account's
// shell, if it has one, had begun to run it.
type UnstartedError struct{ Err error }

func (e *UnstartedError) Error() string { return "prepare the host: " + e.Err.Error() }

func (e *UnstartedError) Unwrap() error { return e.Err }

// A NoGPGError says that the host lacks GnuPG; Program is what is missing.
type NoGPGError struct{ Program string }

func (e *NoGPGError) Error() string {
	return fmt.Sprintf("there is no %s in the PATH of the account on the host", e.Program)
}

// Hint says what to do.
func (e *NoGPGError) Hint() string {
	return "install GnuPG 2.1 or later there; if it is elsewhere, " + hintRemoteSocket
}

// A SelfError says that the directory of the agent's socket on the host is that of
// the local agent's socket: the account is the user's own on this machine, or the
// two machines share that directory.
type SelfError struct{ Socket string }

func (e *SelfError) Error() string {
	return fmt.Sprintf("the path of the agent's socket on the host, %q, is your own local agent's; it is not forwarded to itself", e.Socket)
}

// Hint says what to do.
func (e *SelfError) Hint() string {
	return "on the same machine nothing is needed; where only the directory is shared (NFS, a container's mount), give the host a /run/user/UID (loginctl enable-linger) or a GNUPGHOME of its own"
}

// A HeldError says that another connection already forwards an agent to the socket,
// and it answers.
type HeldError struct{ Socket string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another connection already forwards an agent to %q on the host", e.Socket)
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "end that connection, or take its place with --takeover"
}

// An OwnAgentError says that the host's own agent runs, and was not stopped because
// Options.Evict was not set.
type OwnAgentError struct {
	Socket string
	PID    int // on the host
}

func (e *OwnAgentError) Error() string {
	return fmt.Sprintf("the host's own agent (process %d) was left running at %q", e.PID, e.Socket)
}

// Hint says what to do.
func (e *OwnAgentError) Hint() string {
	return "make the local agent reachable first (gpgconf --launch gpg-agent); then connect again"
}

// A SocketPathError says that the path where gpg on the host looks for its agent
// cannot be forwarded. Path may be empty, and is not to be trusted.
type SocketPathError struct {
	Path   string
	Reason string
	Advice string
}

func (e *SocketPathError) Error() string {
	if e.Path == "" {
		return "the path of the agent's socket on the host: " + e.Reason
	}
	return fmt.Sprintf("the path of the agent's socket on the host, %.200q: %s", e.Path, e.Reason)
}

// Hint says what to do.
func (e *SocketPathError) Hint() string {
	if e.Advice == "" {
		return "check what `gpgconf --list-dirs agent-socket` prints on the host; " + hintRemoteSocket
	}
	return e.Advice
}

// A HomeError says that Options.Home is not a directory that the account owns.
type HomeError struct{ Home string }

func (e *HomeError) Error() string {
	return fmt.Sprintf("the GNUPGHOME of the login shell on the host, %.200q, is no directory of the account's", e.Home)
}

// Hint says what to do.
func (e *HomeError) Hint() string {
	return "make that directory on the host, with mode 0700, or connect with --takeover if it is elsewhere now"
}

// verdictError returns the error for the script's verdict "error": detail says what keeps
// the socket's path from being used.
func verdictError(detail, socket string) error {
	e := &SocketPathError{Path: socket}
	switch detail {
	case "path":
		e.Reason = "gpgconf names none"
		e.Advice = "GnuPG on the host must be 2.1 or later; " + hintRemoteSocket
	case "unnamed":
		e.Reason = "its directory is missing, and what gpg will call it takes a sha1sum to find out"
		e.Advice = "run `gpgconf --create-socketdir` on the host"
	case "nodir":
		e.Reason = "its directory is missing and could not be made"
		e.Advice = "make that directory on the host, with mode 0700"
	case "readonly":
		e.Reason = "its directory may not be written to"
		e.Advice = "check the owner and mode of that directory on the host"
	case "directory":
		e.Reason = "a directory is there"
		e.Advice = "move that directory away on the host"
	case "file":
		e.Reason = "a file that is not a socket is there"
		e.Advice = "move that file away on the host"
	case "redirect":
		e.Reason = "a file is there that redirects gpg to another socket (%Assuan%)"
		e.Advice = "move that file away on the host, or name the socket it leads to with --remote-socket"
	case "unremovable":
		e.Reason = "what is there cannot be removed"
		e.Advice = "remove it on the host, as the user who owns it"
	case "home":
		return &HomeError{socket}
	default:
		return reportError(fmt.Errorf("the host's report has an unknown reason: %.80q", detail))
	}
	return e
}

// An ImportError says that public keys are still missing on the host. The
// forward works without them; gpg there needs them to choose a key and to verify.
type ImportError struct {
	Missing []string // fingerprints
	Note    string   // the last message of gpg there, not to be trusted
	Err     error    // may be nil
}

func (e *ImportError) Error() string {
	text := fmt.Sprintf("%d public keys could not be imported on the host", len(e.Missing))
	if len(e.Missing) == 1 {
		text = fmt.Sprintf("the public key %s could not be imported on the host", e.Missing[0])
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Note != "" {
		text += fmt.Sprintf(": %.300q", e.Note)
	}
	return text
}

func (e *ImportError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ImportError) Hint() string {
	if hung, ok := errors.AsType[*HungError](e.Err); ok {
		return hung.Hint()
	}
	return "import them yourself: gpg --export KEY | ssh HOST gpg --import"
}

// A HungError says that one of GnuPG's programs on the host took too long. The script
// has killed it, or tried to.
type HungError struct {
	Program string // for example "gpg --import"
	Lock    *Lock  // the lock that it was most likely waiting for, or nil
}

// A Lock is one of GnuPG's lock files on the host. Path and Node are not to be
// trusted.
type Lock struct {
	Path string
	Node string // the name of the machine that made it
	PID  int    // of the process that made it, on that machine; 0 if it does not say
}

func (e *HungError) Error() string {
	text := e.Program + " on the host hangs"
	if e.Lock != nil {
		text += fmt.Sprintf("; process %d of %.80q holds %.200q", e.Lock.PID, e.Lock.Node, e.Lock.Path)
	}
	return text
}

// Hint says what to do.
func (e *HungError) Hint() string {
	if e.Lock != nil {
		return "if that process has ended, remove the lock on the host; gpg does not when another machine made it"
	}
	return "run it on the host and see what it waits for"
}
