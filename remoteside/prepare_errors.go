package remoteside

import "fmt"

const hintRemoteSocket = "--remote-socket PATH forwards to a path of your choice without running anything there"

// A NoShellError says that the account does not run commands: its shell is
// nologin, a command is forced upon it, or the output of the connection is not
// that of a shell. FirstLine is the first line that was printed instead, as the
// host sent it: not to be trusted, and quoted by Error.
type NoShellError struct {
	FirstLine string
	Err       error // how the command ended, may be nil
}

func (e *NoShellError) Error() string {
	text := "the account on the host runs no shell commands"
	if e.FirstLine != "" {
		text += fmt.Sprintf("; it says %q", e.FirstLine)
	} else if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *NoShellError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *NoShellError) Hint() string { return hintRemoteSocket }

// A NoGPGError says that the host lacks GnuPG; Program is what is missing.
type NoGPGError struct{ Program string }

func (e *NoGPGError) Error() string {
	return fmt.Sprintf("there is no %s in the PATH of the account on the host", e.Program)
}

// Hint says what to do.
func (e *NoGPGError) Hint() string {
	return "install GnuPG 2.1 or later there; if it is elsewhere, " + hintRemoteSocket
}

// A HeldError says that an agent which is not the host's own answers at the
// socket: the live forward of another connection.
type HeldError struct{ Socket string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another connection already forwards an agent to %q on the host", e.Socket)
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "end that connection, or take its place with --takeover"
}

// An OwnAgentError says that the host's own agent runs and was left alone, as
// PrepareOptions.Evict was not set.
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

// A SocketPathError says that the path where the host's gpg looks for its agent
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

// obstacle is the error for a verdict of the script's: what is at the path.
func obstacle(detail, socket string) error {
	e := &SocketPathError{Path: socket}
	switch detail {
	case "path":
		e.Reason = "gpgconf names none"
		e.Advice = "GnuPG on the host must be 2.1 or later; " + hintRemoteSocket
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
	default:
		return reportError(fmt.Errorf("the host's report has an unknown reason: %.80q", detail))
	}
	return e
}

// An ImportError says that public keys are still missing on the host. The
// forward works without; gpg there needs them to choose a key and to verify.
type ImportError struct {
	Missing []string // fingerprints
	Note    string   // what gpg there said last, not to be trusted
	Err     error    // may be nil
}

func (e *ImportError) Error() string {
	text := fmt.Sprintf("%d public keys could not be imported on the host", len(e.Missing))
	if len(e.Missing) == 1 {
		text = fmt.Sprintf("the public key %s could not be imported on the host", e.Missing[0])
	}
	switch {
	case e.Err != nil:
		return text + ": " + e.Err.Error()
	case e.Note != "":
		return text + fmt.Sprintf(": %q", e.Note)
	}
	return text
}

func (e *ImportError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ImportError) Hint() string {
	return "import them yourself: gpg --export KEY | ssh HOST gpg --import"
}
