package compat

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

// What is added as D lines is the same data again, in full lines that are none too
// long, whatever bytes need an escape.
func TestDataLinesAreFull(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, data := range [][]byte{
		nil, {0}, []byte("%"), bytes.Repeat([]byte("x"), 995), bytes.Repeat([]byte("x"), 996), bytes.Repeat([]byte("x"), 997),
		bytes.Repeat([]byte("\n"), 1000), bytes.Repeat(all, 40),
	} {
		lines := appendData([]byte("S before\n"), data)
		rest, ok := bytes.CutPrefix(lines, []byte("S before\n"))
		require.True(t, ok)
		var got []byte
		each := slices.Collect(bytes.Lines(rest))
		for i, line := range each {
			text, ok := bytes.CutSuffix(line, []byte("\n"))
			require.True(t, ok)
			require.LessOrEqual(t, len(text), assuan.MaxLine)
			if i < len(each)-1 {
				require.GreaterOrEqual(t, len(text), assuan.MaxLine-2)
			}
			text, ok = bytes.CutPrefix(text, []byte("D "))
			require.True(t, ok)
			plain, err := url.PathUnescape(string(text))
			require.NoError(t, err)
			got = append(got, plain...)
		}
		require.Equal(t, string(data), string(got))
	}
}

// Of a keygrip every digit counts, and nothing else is one.
func TestKeygripOfAKeyinfo(t *testing.T) {
	for c := range 256 {
		word := strings.Repeat(string([]byte{byte(c)}), assuan.KeygripDigits)
		ev, q := classifyQuery([]byte("KEYINFO " + word + "\n"))
		digit := strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) && c < 128
		require.Equal(t, digit, ev == evClientKeyinfo, "%q", c)
		if digit {
			require.Equal(t, strings.ToUpper(word), string(q.grip[:]))
		}
		require.Equal(t, digit, assuan.IsHex(byte(c)))
		require.Equal(t, digit, allKeygrips([]string{word}))
	}
}

// As many keys as gpg asks for are listed, and the last line of the answer is told
// apart from those before.
func TestListOfAsManyKeysAsThereMayBe(t *testing.T) {
	grips := slices.Repeat([]string{gripA}, maxKeygrips)
	agent := fakeagent.New()
	c := New(t.Context(), agent, func(context.Context) ([]string, error) { return grips, nil })
	require.NoError(t, c.WriteLine([]byte("HAVEKEY --list=1000\n")))
	go func() {
		<-agent.Heard
		agent.Say <- errParameter
		for range grips {
			<-agent.Heard
			agent.Say <- "OK\n"
		}
	}()
	lines := 0
	for {
		line, more, err := c.ReadLine()
		require.NoError(t, err)
		require.Equal(t, assuan.KindOf(line) != assuan.KindOK, more, "%q", line)
		if !more {
			break
		}
		lines++
	}
	require.Equal(t, (maxKeygrips*gripLength+995)/996, lines)
	require.NoError(t, c.Close())
}
