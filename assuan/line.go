package assuan

import "bytes"

// MaxLine is the longest line in bytes, without its LF, that may be relayed in
// either direction: libassuan's writer never emits more
// (ASSUAN_LINELENGTH 1002 = 1000 + CR + LF; assuan-buffer.c).
//
// libassuan's reader accepts one byte more. Beyond that it answers ERR in the
// middle of an inquiry and runs the rest of the line as a new command, so a
// longer line must never reach it.
const MaxLine = 1000

// A Kind is what one of the agent's lines means for the conversation.
type Kind uint8

// The kinds of the agent's lines. The zero value is a line that libassuan's
// client refuses (client.c, assuan_client_parse_response).
const (
	KindInvalid Kind = iota
	KindOK           // ends the response
	KindERR          // ends the response
	KindInquire      // suspends the response until the client has answered
	KindData         // part of the response
	KindStatus       // part of the response
	KindComment      // means nothing, as does an empty line
	numKinds
)

var kindNames = [numKinds]string{
	KindInvalid: "invalid", KindOK: "OK", KindERR: "ERR", KindInquire: "INQUIRE",
	KindData: "D", KindStatus: "S", KindComment: "#",
}

// String returns the Assuan keyword of the kind.
func (k Kind) String() string { return kindNames[k] }

// Final reports whether it is the client's turn after the line: the response is
// complete, or suspended by an inquiry.
func (k Kind) Final() bool { return k.Complete() || k == KindInquire }

// Complete reports whether the response ends with the line.
func (k Kind) Complete() bool { return k == KindOK || k == KindERR }

// KindOf tells what one of the agent's lines is. Keywords are case-sensitive and
// end at a space or at the end of the line (client.c). END is a keyword only from
// the client; from an agent it ends nothing and counts as data.
func KindOf(line []byte) Kind {
	line = Trim(line)
	switch {
	case len(line) == 0, line[0] == '#':
		return KindComment
	case bytes.HasPrefix(line, []byte("D ")):
		return KindData
	case isKeyword(line, "S"):
		return KindStatus
	case isKeyword(line, "OK"):
		return KindOK
	case isKeyword(line, "ERR"):
		return KindERR
	case isKeyword(line, "INQUIRE"):
		return KindInquire
	case isKeyword(line, "END"):
		return KindData
	}
	return KindInvalid
}

func isKeyword(line []byte, word string) bool {
	return len(line) >= len(word) && string(line[:len(word)]) == word &&
		(len(line) == len(word) || line[len(word)] == ' ')
}

// Trim returns line without its LF and without one CR directly before it; any
// other CR is data (assuan-buffer.c, _assuan_read_line). A line without an LF is
// returned unchanged.
func Trim(line []byte) []byte {
	line, ended := bytes.CutSuffix(line, []byte("\n"))
	if ended {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	return line
}

// Ignorable reports whether a client's line is a comment or empty: libassuan
// drops those without an answer, inside an inquiry and outside
// (assuan-handler.c, process_request; assuan-inquire.c).
func Ignorable(line []byte) bool {
	line = Trim(line)
	return len(line) == 0 || line[0] == '#'
}
