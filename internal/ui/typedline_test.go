package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The answer is what was typed up to the end of the line or of the input; the end of the input
// alone is an empty answer. The keys that edit a line work in a hidden one, too.
func TestTypedLine(t *testing.T) {
	keys := editKeys{erase: 0x7f, kill: 0x15, word: 0x17, quote: 0x16, end: 4, suspend: 0x1a, edits: true, wide: true}
	for _, test := range []struct {
		input, want string
		keys        editKeys
		err         error
	}{
		{input: ""}, {input: "abc", want: "abc"}, {input: "a b \nmore", want: "a b "}, {input: "\n"}, {input: "a\r\n", want: "a"},
		{input: "a\x7f\x04\x1ab\n", want: "a\x7f\x04\x1ab"},
		{input: "\x04more\n", keys: keys},
		{input: "abc\x04\x04more\n", want: "abc", keys: keys},
		{input: "abc\x04d\x04\x04more\n", want: "abcd", keys: keys},
		{input: "ab\x7f\x7f\x7fc\n", want: "c", keys: keys},
		{input: "a\u00e4\u4e16\x7f\x7fb\n", want: "ab", keys: keys},
		{input: "one two  \x17three\n", want: "one three", keys: keys},
		{input: "one\x17\x17x\n", want: "x", keys: keys},
		{input: "one two\x15x\n", want: "x", keys: keys},
		{input: "a\x16\x7f\x16\x04\x16\x16\n", want: "a\x7f\x04\x16", keys: keys},
		{input: "a\x00b\n", want: "a\x00b", keys: editKeys{edits: true}},
		{input: "ab\x1a", keys: keys, err: errSuspend},
		{input: strings.Repeat("x", maxTyped+1), err: errTypedTooMuch},
	} {
		typed := newTypedLine()
		typed.line = append(typed.line, "before"...)
		typed.forget()
		err := typed.read(strings.NewReader(test.input), test.keys)
		require.ErrorIs(t, err, test.err, "%q", test.input)
		if err == nil {
			require.Equal(t, test.want, string(typed.answer()), "%q", test.input)
		}
	}
}
