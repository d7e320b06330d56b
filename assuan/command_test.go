package assuan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerb(t *testing.T) {
	for line, want := range map[string]string{
		"PKSIGN\n":               "PKSIGN",
		"PKSIGN\r\n":             "PKSIGN",
		"PKSIGN\r\r\n":           "PKSIGN\r",
		"PKSIGN":                 "PKSIGN",
		"pksign -- nonce\n":      "pksign",
		"OPTION\tttyname=/dev\n": "OPTION",
		"":                       "",
		"\n":                     "",
		" NOP\n":                 "",
		"\tNOP\n":                "",
		"NOP\x00x\n":             "NOP\x00x",
		"#\n":                    "#",
	} {
		require.Equal(t, want, string(Verb([]byte(line))), "%q", line)
	}
}

func TestIsVerb(t *testing.T) {
	for verb, want := range map[string]bool{
		"INPUT": true, "input": true, "iNpUt": true,
		"INPU": false, "INPUTS": false, "": false, " INPUT": false,
		"\u0131NPUT": false, // a dotless i, which Unicode folds to I
		"INPU\x14":   false, // a T but for the bits that make it a letter
	} {
		require.Equal(t, want, IsVerb([]byte(verb), "INPUT"), "%q", verb)
	}
}

func TestAnswerOf(t *testing.T) {
	for line, want := range map[string]Answer{
		"D x\n": AnswerData, "d x\n": AnswerData, "D \n": AnswerData, "D END\n": AnswerData, "D \x00\n": AnswerData,
		"D\n": AnswerUnexpected, "D\tx\n": AnswerUnexpected, "Dx\n": AnswerUnexpected, " D x\n": AnswerUnexpected,

		"END\n": AnswerEnd, "end\n": AnswerEnd, "eNd\r\n": AnswerEnd, "END x\n": AnswerEnd, "END": AnswerEnd,
		"ENDX\n": AnswerUnexpected, "END\t\n": AnswerUnexpected, "END\r\r\n": AnswerUnexpected, "EN\n": AnswerUnexpected,

		"CAN\n": AnswerCancel, "can\n": AnswerCancel, "CANCEL\n": AnswerCancel, "Canada x\n": AnswerCancel,
		"CA\n": AnswerUnexpected,

		"\n": AnswerNothing, "\r\n": AnswerNothing, "#\n": AnswerNothing, "# D x\n": AnswerNothing,
		"\r\r\n": AnswerUnexpected, // a CR is not nothing

		"NOP\n": AnswerUnexpected, "BYE\n": AnswerUnexpected, "RESET\n": AnswerUnexpected,
		"OK\n": AnswerUnexpected, " \n": AnswerUnexpected, "\x00\n": AnswerUnexpected,
	} {
		require.Equal(t, want, AnswerOf([]byte(line)), "%q", line)
	}
}

func TestEscapesValid(t *testing.T) {
	for line, want := range map[string]bool{
		"D abc\n": true, "D %25\n": true, "D %0D%0A\n": true, "D %aF\n": true, "D %00%\n": false,
		"D %\n": false, "D %\r\n": false, "D %2\n": false, "D %2\r\n": false, "D %2": false, "D %": false,
		"D %%25\n": false, "D %25%\n": false, "D %2%5\n": false, "D %g0\n": false, "D %0g\n": false,
		"D % 5\n": false, "D %25 100%25\n": true, "\n": true, "": true,
		"D %0\n0":       false, // an LF is no digit
		"D %\x00\x00\n": false, "D %`0\n": false, "D %@0\n": false, "D %/0\n": false, "D %:0\n": false,
	} {
		require.Equal(t, want, EscapesValid([]byte(line)), "%q", line)
	}
}

// TestNothingAllocates pins the promise of the package doc.
func TestNothingAllocates(t *testing.T) {
	line := []byte("D some data %25 with an escape\n")
	var b LineBuffer
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.Commit(copy(b.Space(), line))
		got, err := b.Next()
		if err != nil || KindOf(got) != KindData || AnswerOf(got) != AnswerData || !EscapesValid(got) ||
			Ignorable(got) || IsVerb(Verb(got), "BYE") || b.More() != true {
			panic("not the line that went in")
		}
		b.Take(got)
	}))
}
