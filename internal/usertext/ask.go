package usertext

import (
	"context"
	"errors"
)

// ErrNoPrompt says that the user would have had to be asked something, but BatchMode or a
// missing Asker forbids it.
var ErrNoPrompt = errors.New("asking is not possible")

// An Asker asks the user something for a connection that is being made. The text that
// it is given is safe for a terminal already (Printable). Its methods must return when
// ctx is done. In BatchMode they are not called.
type Asker interface {
	// AskSecret shows the prompt and reads one line without echo. The caller
	// clears the answer. An error ends the log-in.
	AskSecret(ctx context.Context, prompt string) ([]byte, error)
	// Ask shows the text and reads one line with echo.
	Ask(ctx context.Context, text string) (string, error)
	// Confirm asks for a permission in a dialog, such as that of SSH_ASKPASS
	// (ask_permission in OpenSSH's readpass.c). Where there is no dialog, the
	// answer is no.
	Confirm(ctx context.Context, question string) bool
	// Notice shows text of one or more lines from a level on, and does not wait for an
	// answer.
	Notice(level Level, text string)
	// Banner shows what the server says before the log-in (RFC 4252 section 5.4), from level
	// Info on. -E does not send it elsewhere, as it does what ssh logs.
	Banner(text string)
}
