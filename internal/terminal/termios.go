//go:build linux || darwin

package terminal

import (
	"encoding/binary"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// ttyDisabled stands for a control character that is not set (RFC 4254 section 8).
const ttyDisabled = 255

// A ttyChar is a control character: its opcode and its index in c_cc.
type ttyChar struct {
	op    byte
	index int
}

// A ttyFlag is a mode: its opcode and its bit in one of the four words of termios.
type ttyFlag struct {
	op  byte
	bit uint64
}

// encodeModes encodes what OpenSSH does (ssh_tty_make_modes in ttymodes.c): the speeds, in
// bits per second, the control characters and the modes, each an opcode and a uint32.
func encodeModes(t *unix.Termios) []byte {
	input, output := lineSpeeds(t)
	var modes []byte
	put := func(op byte, value uint32) {
		modes = append(modes, op)
		modes = binary.BigEndian.AppendUint32(modes, value)
	}
	put(ssh.TTY_OP_OSPEED, output)
	put(ssh.TTY_OP_ISPEED, input)
	for _, char := range ttyChars() {
		value := uint32(t.Cc[char.index])
		if t.Cc[char.index] == VDisable {
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
	return append(modes, TtyOpEnd)
}

func boolValue(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// ttyChars are the control characters that every system has, and those of this one.
func ttyChars() []ttyChar {
	return append([]ttyChar{
		{ssh.VINTR, unix.VINTR}, {ssh.VQUIT, unix.VQUIT}, {ssh.VERASE, unix.VERASE}, {ssh.VKILL, unix.VKILL},
		{ssh.VEOF, unix.VEOF}, {ssh.VEOL, unix.VEOL}, {ssh.VEOL2, unix.VEOL2}, {ssh.VSTART, unix.VSTART},
		{ssh.VSTOP, unix.VSTOP}, {ssh.VSUSP, unix.VSUSP}, {ssh.VREPRINT, unix.VREPRINT}, {ssh.VWERASE, unix.VWERASE},
		{ssh.VLNEXT, unix.VLNEXT}, {ssh.VDISCARD, unix.VDISCARD},
	}, systemChars()...)
}

func inputFlags() []ttyFlag {
	return append([]ttyFlag{
		{ssh.IGNPAR, unix.IGNPAR}, {ssh.PARMRK, unix.PARMRK}, {ssh.INPCK, unix.INPCK}, {ssh.ISTRIP, unix.ISTRIP},
		{ssh.INLCR, unix.INLCR}, {ssh.IGNCR, unix.IGNCR}, {ssh.ICRNL, unix.ICRNL}, {ssh.IXON, unix.IXON},
		{ssh.IXANY, unix.IXANY}, {ssh.IXOFF, unix.IXOFF}, {ssh.IMAXBEL, unix.IMAXBEL},
	}, systemInputFlags()...)
}

func localFlags() []ttyFlag {
	return append([]ttyFlag{
		{ssh.ISIG, unix.ISIG}, {ssh.ICANON, unix.ICANON}, {ssh.ECHO, unix.ECHO}, {ssh.ECHOE, unix.ECHOE},
		{ssh.ECHOK, unix.ECHOK}, {ssh.ECHONL, unix.ECHONL}, {ssh.NOFLSH, unix.NOFLSH}, {ssh.TOSTOP, unix.TOSTOP},
		{ssh.IEXTEN, unix.IEXTEN}, {ssh.ECHOCTL, unix.ECHOCTL}, {ssh.ECHOKE, unix.ECHOKE}, {ssh.PENDIN, unix.PENDIN},
	}, systemLocalFlags()...)
}

func outputFlags() []ttyFlag {
	return append([]ttyFlag{
		{ssh.OPOST, unix.OPOST}, {ssh.ONLCR, unix.ONLCR}, {ssh.OCRNL, unix.OCRNL}, {ssh.ONOCR, unix.ONOCR},
		{ssh.ONLRET, unix.ONLRET},
	}, systemOutputFlags()...)
}

func controlFlags() []ttyFlag {
	return []ttyFlag{{ssh.CS7, unix.CS7}, {ssh.CS8, unix.CS8}, {ssh.PARENB, unix.PARENB}, {ssh.PARODD, unix.PARODD}}
}
