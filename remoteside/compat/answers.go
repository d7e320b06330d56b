package compat

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gpg-bridge/assuan"
)

// The agents' answers, as was tried: gpg-agent 2.2.40 does not know --list and takes
// it for a keygrip, 2.4.7 forbids it; 2.2.40 forbids KEYINFO.
const (
	codeNoSecretKey = 67108881 // GPG_ERR_NO_SECKEY 17
	codeForbidden   = 67109115 // GPG_ERR_FORBIDDEN 251
	codeParameter   = 67109144 // GPG_ERR_ASS_PARAMETER 280

	errNotFound  = "ERR 67108891 Not found <GPG Agent>\n"        // GPG_ERR_NOT_FOUND 27, to KEYINFO
	errTruncated = "ERR 67108938 Result truncated <GPG Agent>\n" // GPG_ERR_TRUNCATED 74, to HAVEKEY --list=n
)

// gripLength is the length, in bytes, of a keygrip in the answer to HAVEKEY --list.
const gripLength = assuan.KeygripDigits / 2

// A query is a client's command that an agent may refuse and that we can answer
// instead.
type query struct {
	grip  [assuan.KeygripDigits]byte // KEYINFO: the key, in upper case
	limit int                        // HAVEKEY --list: the most keys to list; 0: all
}

// classifyQuery returns the event that a client's line is, and the query if it is
// one. It knows only the forms that gpg uses (g10/call-agent.c, sm/call-agent.c):
// KEYINFO with a keygrip and nothing else, HAVEKEY with --list or --list=n. It does
// not allocate.
func classifyQuery(line []byte) (event, query) {
	c := assuan.ParseCommand(line)
	argument := bytes.TrimRight(c.Args, " \t")
	switch {
	case c.Is("KEYINFO") && len(argument) == assuan.KeygripDigits:
		return keyinfoQuery(c.Keygrip())
	case c.Is("HAVEKEY"):
		return listQuery(argument)
	}
	return evClientLine, query{}
}

func keyinfoQuery(grip []byte) (event, query) {
	if grip == nil {
		return evClientLine, query{}
	}
	var q query
	for i, c := range grip {
		if 'a' <= c && c <= 'f' {
			c -= 'a' - 'A'
		}
		q.grip[i] = c
	}
	return evClientKeyinfo, q
}

func listQuery(argument []byte) (event, query) {
	limit, ok := bytes.CutPrefix(argument, []byte("--list"))
	switch {
	case ok && len(limit) == 0:
		return evClientList, query{}
	case !ok || limit[0] != '=':
		return evClientLine, query{}
	}
	n, err := strconv.ParseUint(string(limit[1:]), 10, 31)
	if err != nil || n == 0 {
		return evClientLine, query{}
	}
	return evClientList, query{limit: int(n)}
}

// keyinfoAnswer returns an agent's answer to KEYINFO for a key that it has in a file
// (agent/command.c, do_one_keyinfo).
func keyinfoAnswer(grip [assuan.KeygripDigits]byte) []byte {
	return fmt.Appendf(nil, "S KEYINFO %s D - - - P - - -\nOK\n", grip[:])
}

// listAnswer returns an agent's answer to HAVEKEY --list (agent/command.c,
// cmd_havekey): the keygrips one after the other. If there are more than the limit,
// it is the first ones and an error.
func listAnswer(grips []byte, limit int) []byte {
	if limit > 0 && len(grips) > limit*gripLength {
		return append(appendData(nil, grips[:limit*gripLength]), errTruncated...)
	}
	return append(appendData(nil, grips), "OK\n"...)
}

// appendData appends data as D lines, split where libassuan splits them
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

// allKeygrips reports whether all these are keygrips in hex digits.
func allKeygrips(grips []string) bool {
	for _, grip := range grips {
		if len(grip) != assuan.KeygripDigits || strings.Trim(grip, "0123456789ABCDEFabcdef") != "" {
			return false
		}
	}
	return true
}

// appendGrip appends a keygrip in binary.
func appendGrip(grips []byte, grip string) []byte {
	grips, _ = hex.AppendDecode(grips, []byte(grip))
	return grips
}

// cutLine returns the first of several lines, with its LF, and the others.
func cutLine(lines []byte) (line, rest []byte) {
	i := bytes.IndexByte(lines, '\n') + 1
	return lines[:i], lines[i:]
}
