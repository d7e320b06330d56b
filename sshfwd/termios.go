//go:build linux || darwin

package sshfwd

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Opcodes of RFC 4254 section 8 for the line speed, in bits per second.
const (
	ttyOpISpeed = 128
	ttyOpOSpeed = 129
)

// ttyDisabled says that a control character is not set (RFC 4254 section 8).
const ttyDisabled = 255

// A ttyChar is a control character: its opcode and its place in c_cc.
type ttyChar struct {
	op    byte
	index int
}

// A ttyFlag is a mode: its opcode and its bit in one of the four words.
type ttyFlag struct {
	op  byte
	bit uint64
}

// encodeModes encodes what OpenSSH does (ssh_tty_make_modes in ttymodes.c):
// the speeds, each control character, each mode; opcode and uint32 each.
func encodeModes(t *unix.Termios) []byte {
	input, output := lineSpeeds(t)
	var modes []byte
	put := func(op byte, value uint32) {
		modes = append(modes, op)
		modes = binary.BigEndian.AppendUint32(modes, value)
	}
	put(ttyOpOSpeed, output)
	put(ttyOpISpeed, input)
	for _, char := range ttyChars() {
		value := uint32(t.Cc[char.index])
		if t.Cc[char.index] == posixVDisable {
			value = ttyDisabled
		}
		put(char.op, value)
	}
	for _, word := range []struct {
		value uint64
		flags []ttyFlag
	}{
		{uint64(t.Iflag), inputFlags()},
		{uint64(t.Lflag), localFlags()},
		{uint64(t.Oflag), outputFlags()},
		{uint64(t.Cflag), controlFlags()},
	} {
		for _, flag := range word.flags {
			put(flag.op, boolValue(word.value&flag.bit != 0))
		}
	}
	return append(modes, ttyOpEnd)
}

func boolValue(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// ttyChars are the control characters that every system has, and its own.
func ttyChars() []ttyChar {
	return append([]ttyChar{
		{1, unix.VINTR}, {2, unix.VQUIT}, {3, unix.VERASE}, {4, unix.VKILL}, {5, unix.VEOF},
		{6, unix.VEOL}, {7, unix.VEOL2}, {8, unix.VSTART}, {9, unix.VSTOP}, {10, unix.VSUSP},
		{12, unix.VREPRINT}, {13, unix.VWERASE}, {14, unix.VLNEXT}, {18, unix.VDISCARD},
	}, systemChars()...)
}

func inputFlags() []ttyFlag {
	return append([]ttyFlag{
		{30, unix.IGNPAR}, {31, unix.PARMRK}, {32, unix.INPCK}, {33, unix.ISTRIP}, {34, unix.INLCR},
		{35, unix.IGNCR}, {36, unix.ICRNL}, {38, unix.IXON}, {39, unix.IXANY}, {40, unix.IXOFF},
		{41, unix.IMAXBEL},
	}, systemInputFlags()...)
}

func localFlags() []ttyFlag {
	return append([]ttyFlag{
		{50, unix.ISIG}, {51, unix.ICANON}, {53, unix.ECHO}, {54, unix.ECHOE}, {55, unix.ECHOK},
		{56, unix.ECHONL}, {57, unix.NOFLSH}, {58, unix.TOSTOP}, {59, unix.IEXTEN},
		{60, unix.ECHOCTL}, {61, unix.ECHOKE}, {62, unix.PENDIN},
	}, systemLocalFlags()...)
}

func outputFlags() []ttyFlag {
	return append([]ttyFlag{
		{70, unix.OPOST}, {72, unix.ONLCR}, {73, unix.OCRNL}, {74, unix.ONOCR}, {75, unix.ONLRET},
	}, systemOutputFlags()...)
}

func controlFlags() []ttyFlag {
	return []ttyFlag{{90, unix.CS7}, {91, unix.CS8}, {92, unix.PARENB}, {93, unix.PARODD}}
}
