package remoteside

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gpg-bridge/assuan"
)

// What the agents say, as was measured: gpg-agent 2.2.40 knows no --list and
// takes it for a keygrip, 2.4.7 forbids it, and 2.2.40 forbids KEYINFO.
const (
	codeNoSecretKey = 67108881 // GPG_ERR_NO_SECKEY 17
	codeForbidden   = 67109115 // GPG_ERR_FORBIDDEN 251
	codeParameter   = 67109144 // GPG_ERR_ASS_PARAMETER 280

	errNotFound  = "ERR 67108891 Not found <GPG Agent>\n"        // GPG_ERR_NOT_FOUND 27, to KEYINFO
	errTruncated = "ERR 67108938 Result truncated <GPG Agent>\n" // GPG_ERR_TRUNCATED 74, to HAVEKEY --list=n
)

const (
	gripLength = 20 // bytes: a SHA-1 (libgcrypt, gcry_pk_get_keygrip)
	gripDigits = 2 * gripLength
)

// A query is a command of the client's that an agent may refuse and that can be
// answered in its place.
type query struct {
	grip  [gripDigits]byte // KEYINFO: of which key, in upper case
	limit int              // HAVEKEY --list: how many keys at most; 0: all
}

// classifyQuery tells whether a line of the client's is one, in the only forms
// that gpg uses (g10/call-agent.c, sm/call-agent.c): KEYINFO with a keygrip and
// nothing else, HAVEKEY with --list or --list=n. It does not allocate, and looks
// at the first byte only of nearly all lines.
func classifyQuery(line []byte) (compatEvent, query) {
	if len(line) == 0 || line[0]|0x20 != 'k' && line[0]|0x20 != 'h' {
		return cevClientLine, query{}
	}
	verb := assuan.Verb(line)
	argument := bytes.Trim(assuan.Trim(line)[len(verb):], " \t")
	switch {
	case assuan.IsVerb(verb, "KEYINFO"):
		return keyinfoQuery(argument)
	case assuan.IsVerb(verb, "HAVEKEY"):
		return listQuery(argument)
	}
	return cevClientLine, query{}
}

func keyinfoQuery(argument []byte) (compatEvent, query) {
	var q query
	if len(argument) != gripDigits {
		return cevClientLine, q
	}
	for i, c := range argument {
		switch {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'F':
		case 'a' <= c && c <= 'f':
			c -= 'a' - 'A'
		default:
			return cevClientLine, query{}
		}
		q.grip[i] = c
	}
	return cevClientKeyinfo, q
}

func listQuery(argument []byte) (compatEvent, query) {
	limit, ok := bytes.CutPrefix(argument, []byte("--list"))
	switch {
	case ok && len(limit) == 0:
		return cevClientList, query{}
	case !ok || limit[0] != '=':
		return cevClientLine, query{}
	}
	n, err := strconv.ParseUint(string(limit[1:]), 10, 31)
	if err != nil || n == 0 {
		return cevClientLine, query{}
	}
	return cevClientList, query{limit: int(n)}
}

// keyinfoAnswer is what an agent says to KEYINFO of a key in a file of its own
// (agent/command.c, do_one_keyinfo).
func keyinfoAnswer(grip [gripDigits]byte) []byte {
	return fmt.Appendf(nil, "S KEYINFO %s D - - - P - - -\nOK\n", grip[:])
}

// listAnswer is what an agent says to HAVEKEY --list (agent/command.c,
// cmd_havekey): the keygrips one after the other, and where there are more than
// the limit, as many, and an error.
func listAnswer(grips []byte, limit int) []byte {
	if limit > 0 && len(grips) > limit*gripLength {
		return append(appendData(nil, grips[:limit*gripLength]), errTruncated...)
	}
	return append(appendData(nil, grips), "OK\n"...)
}

// appendData adds data as D lines, cut where libassuan's writer cuts them
// (assuan-buffer.c, _assuan_cookie_write_data).
func appendData(lines, data []byte) []byte {
	const full = assuan.MaxLine - 2 // room for one more escape
	start := len(lines)
	for _, c := range data {
		if len(lines) == start {
			lines = append(lines, "D "...)
		}
		switch c {
		case '%', '\r', '\n':
			lines = fmt.Appendf(lines, "%%%02X", c)
		default:
			lines = append(lines, c)
		}
		if len(lines)-start >= full {
			lines = append(lines, '\n')
			start = len(lines)
		}
	}
	if len(lines) > start {
		lines = append(lines, '\n')
	}
	return lines
}

// allKeygrips reports whether these are keygrips, as they may be sent.
func allKeygrips(grips []string) bool {
	for _, grip := range grips {
		if len(grip) != gripDigits || strings.Trim(grip, "0123456789ABCDEFabcdef") != "" {
			return false
		}
	}
	return true
}

// appendGrip adds a keygrip in binary.
func appendGrip(grips []byte, grip string) []byte {
	grips, _ = hex.AppendDecode(grips, []byte(grip))
	return grips
}

// cutLine divides what begins with a line after it.
func cutLine(lines []byte) (line, rest []byte) {
	i := bytes.IndexByte(lines, '\n') + 1
	return lines[:i], lines[i:]
}
