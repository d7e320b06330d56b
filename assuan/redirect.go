package assuan

import (
	"bytes"
	"fmt"
	"strings"
)

// maxSocketName is the longest socket name, in bytes: sun_path less its NUL.
const maxSocketName = 107

// parseRedirect reads a file that begins with redirectMagic. The name ends at
// the first LF, and the file must end with an LF. Nothing is trimmed: as in
// libassuan, a CR before the LF is part of the name.
func parseRedirect(content []byte) (SocketFile, error) {
	if len(content) > MaxSocketFile {
		return malformed(fmt.Sprintf("its redirect is longer than %d bytes", MaxSocketFile))
	}
	if content[len(content)-1] != '\n' {
		return malformed("its redirect does not end with a line feed")
	}
	name, _, _ := bytes.Cut(content[len(redirectMagic):], []byte{'\n'})
	if len(name) == 0 {
		return malformed("its redirect names no socket")
	}
	if bytes.IndexByte(name, 0) >= 0 {
		return malformed("its redirect has a NUL in the name")
	}
	return SocketFile{Kind: SocketRedirect, Target: string(name)}, nil
}

// ExpandRedirect replaces every ${VAR} in a redirect's target by what getenv
// returns for VAR, "" if it is not set, and returns the socket's name. Nothing else
// is special: $VAR without braces is literal, a value is not expanded again,
// and a relative name stays relative. The error is a *SocketFileError if a brace is
// missing, or if the result is empty or longer than a socket's name can be, 107
// bytes (libassuan, eval_redirection).
func ExpandRedirect(target string, getenv func(string) string) (string, error) {
	var name strings.Builder
	for rest := target; rest != ""; {
		literal, after, found := strings.Cut(rest, "${")
		name.WriteString(literal)
		if !found {
			break
		}
		variable, tail, closed := strings.Cut(after, "}")
		if !closed {
			return "", &SocketFileError{Reason: "its redirect has a ${ without }"}
		}
		if variable != "" {
			name.WriteString(getenv(variable))
		}
		rest = tail
	}
	if name.Len() == 0 {
		return "", &SocketFileError{Reason: "its redirect names no socket"}
	}
	if name.Len() > maxSocketName {
		return "", &SocketFileError{Reason: fmt.Sprintf("its redirect leads to a name longer than %d bytes", maxSocketName)}
	}
	return name.String(), nil
}
