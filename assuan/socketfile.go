package assuan

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// MaxSocketFile is the size of the longest file that can stand for a socket,
// in bytes (libassuan's eval_redirection). A caller should read one byte more, so
// that ParseSocketFile can refuse a longer file.
const MaxSocketFile = 511

// NonceSize is the size of the secret in a socket file, in bytes.
const NonceSize = 16

const (
	redirectMagic = "%Assuan%\nsocket="
	cygwinMagic   = "!<socket >"
)

// A SocketKind says what a regular file that stands for a socket leads to.
type SocketKind uint8

const (
	// SocketRedirect names another socket (libassuan, not on Windows).
	SocketRedirect SocketKind = iota + 1
	// SocketNative is libassuan's emulation on Windows: a TCP port of
	// 127.0.0.1, and a nonce that the client sends first.
	SocketNative
	// SocketCygwin is the emulation of Cygwin and MSYS, Git for Windows'
	// included: a TCP port of 127.0.0.1, and a handshake (cygwin.go).
	SocketCygwin
)

// String returns the kind's name.
func (k SocketKind) String() string {
	switch k {
	case SocketRedirect:
		return "redirect"
	case SocketNative:
		return "native"
	case SocketCygwin:
		return "cygwin"
	}
	return "SocketKind(" + strconv.Itoa(int(k)) + ")"
}

// A SocketFile is the content of a regular file at a socket's path. Kind says which
// of the other fields are set.
type SocketFile struct {
	Kind SocketKind

	// SocketNative and SocketCygwin: the port of 127.0.0.1, never 0, and the
	// secret, as it goes over the wire.
	Port  uint16
	Nonce [NonceSize]byte

	// SocketRedirect: the other socket's name, to be given to ExpandRedirect.
	Target string
}

// String describes the file without its secret.
func (f SocketFile) String() string {
	if f.Kind == SocketRedirect {
		return fmt.Sprintf("redirect to %q", f.Target)
	}
	return fmt.Sprintf("%v socket at port %d", f.Kind, f.Port)
}

// A SocketFileError says why a regular file cannot stand for a socket.
type SocketFileError struct {
	Reason string // never holds the file's content
}

func (e *SocketFileError) Error() string { return "not a socket file: " + e.Reason }

// Hint says what to do.
func (e *SocketFileError) Hint() string {
	return "remove the file and restart the agent: gpgconf --kill gpg-agent, then gpgconf --launch gpg-agent"
}

// ParseSocketFile takes the content of a regular file and returns what it
// stands for, or a *SocketFileError. Only the content decides on the kind, so
// every kind can be read on every system.
//
// The rules are those of libassuan's assuan-socket.c (read_port_and_nonce,
// eval_redirection), but stricter than its atoi and sscanf: a port is a decimal
// number without sign, blanks or leading zeros, as everybody writes it.
func ParseSocketFile(content []byte) (SocketFile, error) {
	switch {
	case len(content) == 0:
		return malformed("it is empty")
	case bytes.HasPrefix(content, []byte(cygwinMagic)):
		return parseCygwin(content[len(cygwinMagic):])
	case bytes.HasPrefix(content, []byte(redirectMagic)):
		return parseRedirect(content)
	}
	return parseNative(content)
}

// parseNative reads "%d\n" and 16 raw bytes. The nonce may contain LF, CR and NUL,
// so what follows the first LF is counted, not split.
func parseNative(content []byte) (SocketFile, error) {
	digits, nonce, found := bytes.Cut(content, []byte{'\n'})
	port, ok := parsePort(digits)
	if !found || !ok {
		return malformed("it has no port number, redirect or Cygwin mark")
	}
	if len(nonce) != NonceSize {
		return malformed(fmt.Sprintf("its nonce has %d bytes, not %d", len(nonce), NonceSize))
	}
	return SocketFile{Kind: SocketNative, Port: port, Nonce: [NonceSize]byte(nonce)}, nil
}

// parseCygwin reads "%u %c %08x-%08x-%08x-%08x" and a NUL that may be missing.
// The kind must be s, a stream.
func parseCygwin(rest []byte) (SocketFile, error) {
	field := bytes.Split(bytes.TrimSuffix(rest, []byte{0}), []byte{' '})
	if len(field) != 3 {
		return malformed("its Cygwin mark is not followed by port, kind and secret")
	}
	port, ok := parsePort(field[0])
	if !ok {
		return malformed("its Cygwin port is not a port number")
	}
	if string(field[1]) != "s" {
		return malformed("its Cygwin socket is not a stream")
	}
	nonce, ok := parseCygwinSecret(field[2])
	if !ok {
		return malformed("its Cygwin secret is not four groups of eight hex digits")
	}
	return SocketFile{Kind: SocketCygwin, Port: port, Nonce: nonce}, nil
}

// parseCygwinSecret reads four 32-bit words that were written with
// %08x-%08x-%08x-%08x. They go over the wire as they lie in memory on the machines
// that Cygwin runs on, little-endian, so each group's bytes are reversed.
func parseCygwinSecret(text []byte) (nonce [NonceSize]byte, ok bool) {
	groups := bytes.Split(text, []byte{'-'})
	if len(groups) != 4 {
		return nonce, false
	}
	for i, group := range groups {
		var word [4]byte
		if len(group) != hex.EncodedLen(len(word)) {
			return nonce, false
		}
		if _, err := hex.Decode(word[:], group); err != nil {
			return nonce, false
		}
		binary.LittleEndian.PutUint32(nonce[4*i:], binary.BigEndian.Uint32(word[:]))
	}
	return nonce, true
}

func parsePort(digits []byte) (uint16, bool) {
	if len(digits) == 0 || len(digits) > 5 || digits[0] < '1' || digits[0] > '9' {
		return 0, false
	}
	port, err := strconv.ParseUint(string(digits), 10, 16)
	return uint16(port), err == nil
}

// Bytes returns the file's content, from which ParseSocketFile makes f again.
func (f SocketFile) Bytes() []byte {
	switch f.Kind {
	case SocketNative:
		return append(strconv.AppendUint(nil, uint64(f.Port), 10), append([]byte{'\n'}, f.Nonce[:]...)...)
	case SocketCygwin:
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(f.Nonce[4*i:]) }
		return fmt.Appendf(nil, "%s%d s %08x-%08x-%08x-%08x\x00", cygwinMagic, f.Port, word(0), word(1), word(2), word(3))
	case SocketRedirect:
		return []byte(redirectMagic + f.Target + "\n")
	}
	return nil
}

func malformed(reason string) (SocketFile, error) {
	return SocketFile{}, &SocketFileError{Reason: reason}
}
