package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/remoteside"
)

func TestOperationOf(t *testing.T) {
	for want, o := range map[share.Operation]remoteside.Operation{
		{Verb: "PKSIGN", Key: "AB", Millis: 1500, Outcome: "ok"}: {Verb: "PKSIGN", Keygrip: "ab", Duration: 1500 * time.Millisecond},
		{Outcome: "unanswered"}:                                  {Unanswered: true},
		{Outcome: "No pinentry <GPG Agent>", Code: 67108949}:     {Code: 67108949, Words: "No pinentry <GPG Agent>"},
		{Outcome: "error 17", Code: 17}:                          {Code: 17},
		{Outcome: `\x1b[2J`, Code: 17}:                           {Code: 17, Words: "\x1b[2J"},
	} {
		require.Equal(t, want, *operationOf(&o))
	}
}
