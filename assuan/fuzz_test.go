package assuan

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLine: a line has one kind whatever ends it, an escape that libassuan would
// stumble over is none of the valid ones, and a LineBuffer gives the lines of a
// stream as they were, in whatever chunks, which the seed decides, they arrive.
func FuzzLine(f *testing.F) {
	f.Add([]byte("OK Pleased to meet you, process 42\n"), uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		for line := range bytes.Lines(in) {
			checkKind(t, line)
			checkAnswer(t, line)
			checkEscapes(t, line)
			checkCommand(t, line)
		}
		checkBuffer(t, in, rand.New(rand.NewPCG(seed, 0)))
	})
}

// checkKind: a line has one kind, whatever ends it, and only its beginning
// decides which.
func checkKind(t *testing.T, line []byte) {
	kind := KindOf(line)
	bare := Trim(line)
	require.Equal(t, bare, Trim(bare))
	require.Equal(t, kind, KindOf(bare))
	require.Equal(t, kind, KindOf(append(bytes.Clone(bare), "\r\n"...)))
	require.Equal(t, KindData, KindOf(append([]byte("D "), line...)), "data that looks like %s", kind)
	if kind.Final() {
		require.True(t, bytes.HasPrefix(bare, []byte(kind.String())))
	}
	kinds := 0
	for _, word := range []string{"OK", "ERR", "INQUIRE", "S", "END"} {
		if isKeyword(bare, word) {
			kinds++
		}
	}
	if bytes.HasPrefix(bare, []byte("D ")) {
		kinds++
	}
	if Ignorable(line) {
		kinds++
	}
	require.LessOrEqual(t, kinds, 1, "%q has two kinds", line)
	require.Equal(t, kinds == 0, kind == KindInvalid, "%q", line)
	require.Equal(t, kind == KindComment, Ignorable(line))
	if ErrorCode(line) != 0 {
		require.Equal(t, KindERR, kind)
	}
}

// checkAnswer: case means nothing, and what is nothing in an inquiry is nothing
// outside one.
func checkAnswer(t *testing.T, line []byte) {
	answer := AnswerOf(line)
	require.Equal(t, answer == AnswerNothing, Ignorable(line))
	require.Equal(t, answer, AnswerOf(asciiUpper(line)))
	require.Equal(t, answer, AnswerOf(Trim(line)))
	if answer == AnswerEnd || answer == AnswerCancel {
		require.Len(t, ParseCommand(asciiUpper(line)).Verb[:3], 3)
	}
}

// checkCommand: nothing of a line is lost but white space, its end means nothing, and
// a keygrip is a word of it.
func checkCommand(t *testing.T, line []byte) {
	c := ParseCommand(line)
	require.NotContains(t, string(c.Verb), " ")
	require.NotContains(t, string(c.Verb), "\t")
	bare := string(Trim(line))
	between := strings.TrimSuffix(strings.TrimPrefix(bare, string(c.Verb)), string(c.Args))
	require.Empty(t, strings.Trim(between, " \t"))
	require.Equal(t, bare, string(c.Verb)+between+string(c.Args))
	require.True(t, len(c.Args) == 0 || !isSpace(c.Args[0]))
	require.Equal(t, c.Args, ParseCommand([]byte(bare)).Args)
	if grip := c.Keygrip(); grip != nil {
		require.Len(t, grip, KeygripDigits)
		require.Contains(t, strings.FieldsFunc(string(c.Args), func(r rune) bool { return r == ' ' || r == '\t' }), string(grip))
	}
}

func asciiUpper(line []byte) []byte {
	up := bytes.Clone(line)
	for i, c := range up {
		if 'a' <= c && c <= 'z' {
			up[i] = c - 'a' + 'A'
		}
	}
	return up
}

var wholeEscapes = regexp.MustCompile(`^(?s:[^%]|%[0-9A-Fa-f]{2})*$`)

// checkEscapes decodes as assuan-inquire.c does and requires that it ends.
func checkEscapes(t *testing.T, line []byte) {
	bare := Trim(line)
	require.Equal(t, wholeEscapes.Match(bare), EscapesValid(line), "%q", line)
	if !EscapesValid(line) {
		return
	}
	require.NotContains(t, string(bare[max(0, len(bare)-2):]), "%")
	for rest := bare; len(rest) > 0; {
		if rest[0] != '%' {
			rest = rest[1:]
			continue
		}
		require.GreaterOrEqual(t, len(rest), 3, "libassuan would loop for ever on %q", line)
		rest = rest[3:]
	}
}

// checkBuffer: what comes out are the lines that went in, up to the first that
// is too long, however they were cut on the way.
func checkBuffer(t *testing.T, in []byte, rnd *rand.Rand) {
	want, wantErr := linesOf(in)
	var b LineBuffer
	var got []string
	var err error
	for err == nil {
		var line []byte
		for line, err = b.Next(); line != nil; line, err = b.Next() {
			require.True(t, b.More())
			got = append(got, string(line))
			b.Take(line)
		}
		if err != nil || len(in) == 0 {
			break
		}
		space := b.Space()
		require.NotEmpty(t, space, "full of a part of a line")
		n := copy(space, in[:1+rnd.IntN(len(in))])
		b.Commit(n)
		in = in[n:]
	}
	require.Equal(t, want, got)
	require.Equal(t, wantErr, err)
}

func linesOf(in []byte) (lines []string, err error) {
	for line := range bytes.Lines(in) {
		ended := line[len(line)-1] == '\n'
		if len(bytes.TrimSuffix(line, []byte("\n"))) > MaxLine {
			return lines, ErrLineTooLong
		}
		if ended {
			lines = append(lines, string(line))
		}
	}
	return lines, nil
}
