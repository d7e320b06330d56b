package sshfwd

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// The shortest time of an answer counts. A refusal is an answer, the end of the connection
// is not.
func TestRoundTripIsTheShortestAnswer(t *testing.T) {
	var c Client
	_, first := c.RoundTrip()
	require.True(t, first.IsZero())
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	c.answers.note(ago(time.Millisecond), io.EOF)
	_, first = c.RoundTrip()
	require.True(t, first.IsZero(), "nothing was answered")

	c.answers.note(ago(time.Hour), nil)
	trip, first := c.RoundTrip()
	require.False(t, first.IsZero())
	require.GreaterOrEqual(t, trip, time.Hour)
	c.answers.note(ago(time.Minute), &ssh.OpenChannelError{Reason: ssh.ResourceShortage})
	c.answers.note(ago(2*time.Hour), nil)
	c.answers.note(ago(time.Millisecond), io.EOF)
	trip, still := c.RoundTrip()
	require.GreaterOrEqual(t, trip, time.Minute)
	require.Less(t, trip, time.Hour)
	require.Equal(t, first, still)
}
