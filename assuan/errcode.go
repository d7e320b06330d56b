package assuan

import (
	"bytes"
	"strconv"
)

// The ERR lines that gpg-bridge sends instead of the agent. gpg reads only the
// number: a libgpg-error code with the error's source in the upper byte, which
// must be 4 (GPG Agent), or gpg does not believe that the agent is restricted
// (gnupg common/asshelp.c). The texts are libgpg-error's.
const (
	ErrTimeout        = "ERR 67108926 Timeout <GPG Agent>\n"                // GPG_ERR_TIMEOUT 62
	ErrNotImplemented = "ERR 67108933 Not implemented <GPG Agent>\n"        // GPG_ERR_NOT_IMPLEMENTED 69
	ErrNoAgent        = "ERR 67108941 No agent running <GPG Agent>\n"       // GPG_ERR_NO_AGENT 77
	ErrNoPinentry     = "ERR 67108949 No pinentry <GPG Agent>\n"            // GPG_ERR_NO_PIN_ENTRY 85
	ErrForbidden      = "ERR 67109115 Forbidden <GPG Agent>\n"              // GPG_ERR_FORBIDDEN 251
	ErrUnexpected     = "ERR 67109138 Unexpected IPC command <GPG Agent>\n" // GPG_ERR_ASS_UNEXPECTED_CMD 274
	ErrUnknown        = "ERR 67109139 Unknown IPC command <GPG Agent>\n"    // GPG_ERR_ASS_UNKNOWN_CMD 275
	ErrSyntax         = "ERR 67109140 IPC syntax error <GPG Agent>\n"       // GPG_ERR_ASS_SYNTAX 276
	ErrLeadingSpace   = "ERR 67109140 IPC syntax error <GPG Agent> - leading white-space\n"
)

// ErrorCode returns the number of an ERR line, or 0 for any other line.
func ErrorCode(line []byte) int {
	if KindOf(line) != KindERR {
		return 0
	}
	number, _, _ := bytes.Cut(bytes.TrimPrefix(Trim(line), []byte("ERR ")), []byte(" "))
	code, err := strconv.ParseUint(string(number), 10, 32)
	if err != nil {
		return 0
	}
	return int(code)
}
