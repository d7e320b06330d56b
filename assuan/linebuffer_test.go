package assuan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// put fills the buffer and requires that everything found room.
func put(t *testing.T, b *LineBuffer, s string) {
	t.Helper()
	n := copy(b.Space(), s)
	require.Equal(t, len(s), n, "no room")
	b.Commit(n)
}

// take returns the next line, taken, or "".
func take(t *testing.T, b *LineBuffer) string {
	t.Helper()
	line, err := b.Next()
	require.NoError(t, err)
	b.Take(line)
	return string(line)
}

func TestLineBufferLines(t *testing.T) {
	var b LineBuffer
	require.False(t, b.More())
	require.Empty(t, take(t, &b))
	put(t, &b, "NO")
	require.False(t, b.More())
	require.Empty(t, take(t, &b))
	require.Equal(t, "NO", string(b.Pending()))
	put(t, &b, "P\r\n\nRESET\nB")
	require.Equal(t, "NOP\r\n", take(t, &b))
	require.True(t, b.More())
	require.Equal(t, "\n", take(t, &b))
	require.Equal(t, "RESET\n", take(t, &b))
	require.False(t, b.More())
	require.Equal(t, "B", string(b.Pending()))
	put(t, &b, "YE\n")
	require.Equal(t, "BYE\n", take(t, &b))
	require.Empty(t, b.Pending())
}

func TestLineBufferNextDoesNotTake(t *testing.T) {
	var b LineBuffer
	put(t, &b, "one\ntwo\n")
	for range 2 {
		line, err := b.Next()
		require.NoError(t, err)
		require.Equal(t, "one\n", string(line))
	}
}

func TestLineBufferLimit(t *testing.T) {
	full := strings.Repeat("x", MaxLine)
	for name, c := range map[string]struct {
		in      string
		lines   int
		tooLong bool
	}{
		"1000 and LF":                  {full + "\n", 1, false},
		"1000 without LF":              {full, 0, false},
		"1001 and LF":                  {full + "x\n", 0, true},
		"1001 without LF":              {full + "x", 0, true},
		"999 and CRLF":                 {full[1:] + "\r\n", 1, false},
		"1000 and CRLF":                {full + "\r\n", 0, true},
		"1001 after a good line":       {"NOP\n" + full + "x\n", 1, true},
		"1001 hidden behind good ones": {strings.Repeat("NOP\n", 500) + full + "x", 500, true},
	} {
		t.Run(name, func(t *testing.T) {
			var b LineBuffer
			put(t, &b, c.in)
			for range c.lines {
				require.NotEmpty(t, take(t, &b))
			}
			require.False(t, b.More())
			line, err := b.Next()
			require.Empty(t, line)
			if c.tooLong {
				require.ErrorIs(t, err, ErrLineTooLong)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestLineBufferFull shows that a full buffer always holds something to take:
// it can be full of lines, and is never full of a part of one.
func TestLineBufferFull(t *testing.T) {
	var b LineBuffer
	line := strings.Repeat("x", MaxLine) + "\n"
	lines := 0
	for len(b.Space()) >= len(line) {
		put(t, &b, line)
		lines++
	}
	put(t, &b, line[:len(b.Space())])
	require.Empty(t, b.Space())
	require.Equal(t, 4, lines, "the burst that bufferSize promises")
	for range lines {
		require.Equal(t, line, take(t, &b))
	}
	require.NotEmpty(t, b.Space())

	b = LineBuffer{}
	put(t, &b, strings.Repeat("x", len(b.Space())))
	_, err := b.Next()
	require.ErrorIs(t, err, ErrLineTooLong)
}

// TestLineBufferWhileReading pins the contract between the goroutine that fills
// and those that take: nothing moves between Space and Commit.
func TestLineBufferWhileReading(t *testing.T) {
	var b LineBuffer
	put(t, &b, "one\ntwo\n")
	room := b.Space()
	first, err := b.Next()
	require.NoError(t, err)
	b.Take(first)
	n := copy(room, "three\n")
	require.Equal(t, "one\n", string(first), "a taken line is valid until the next Space")
	b.Commit(n)
	require.Equal(t, "two\n", take(t, &b))
	require.Equal(t, "three\n", take(t, &b))
}

// TestLineBufferGrowsOnce: a read that fills the buffer makes it one for bulk,
// and keeps what was there; that one never grows.
func TestLineBufferGrowsOnce(t *testing.T) {
	var b LineBuffer
	line := strings.Repeat("x", 127) + "\n" // of which every buffer holds a whole number
	fill := func() int {
		room := b.Space()
		n := copy(room, strings.Repeat(line, len(room)/len(line)+1))
		b.Commit(n)
		return n
	}
	held := fill()
	require.Equal(t, bufferSize, held)
	for range 3 {
		held += fill()
	}
	require.Equal(t, BulkSize, held)
	for range held / len(line) {
		require.Equal(t, line, take(t, &b))
	}
}

// TestLineBufferStaysSmall: a read that fills no more than half of the buffer is no
// sign of bulk, although the buffer is full then.
func TestLineBufferStaysSmall(t *testing.T) {
	var b LineBuffer
	half := strings.Repeat("x", 127) + "\n"
	half = strings.Repeat(half, bufferSize/2/len(half))
	put(t, &b, half)
	put(t, &b, half)
	require.Empty(t, b.Space())
}
