package prepare

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// The script keeps every line that does something, and none that does not.
func TestCompactKeepsWhatRuns(t *testing.T) {
	require.Equal(t, "set x\n  y # z\n", compact("\t# c\n\n\t\tset x\r\n#\n  y # z\n\t\n"))
	require.NotContains(t, compact(commonBody+prepareBody+inspectBody), "\n\n")
	require.NotContains(t, compact(commonBody+prepareBody+inspectBody), "\r")
}

func TestWordsOfTheCommand(t *testing.T) {
	options := Options{Wanted: []Key{{Fingerprint: "A", SelfSignatures: []string{"-20-1", "-1f-2"}}, {Fingerprint: "B"}}}
	require.Equal(t, "A:-20-1,-1f-2 B:", options.wantedWords())
	require.Contains(t, commandFor("m", options), "motd=0"+standIns[1:2]+"takeover=0"+standIns[1:2]+"evict=0"+standIns[1:2])
	options = Options{MOTD: func([]string) {}, Takeover: true, Evict: true}
	require.Contains(t, commandFor("m", options), "motd=1"+standIns[1:2]+"takeover=1"+standIns[1:2]+"evict=1"+standIns[1:2])
	require.Empty(t, options.wantedWords())
}

// A path goes through the shell as it is, whatever bytes it has.
func TestOctalIsOneWord(t *testing.T) {
	all := make([]byte, 0, 255)
	for c := 1; c < 256; c++ {
		all = append(all, byte(c))
	}
	for _, text := range []string{"", "/", "/a b", string(all), "/0" + standIns + "7"} {
		word := octal(text)
		require.Equal(t, text == "", word == "''")
		require.False(t, strings.ContainsAny(word, standIns))
		out, err := exec.Command(env.Tool(t, "sh"), "-c", "set -- "+word+`; printf '%s:%s' "$#" "$1"`).Output()
		require.NoError(t, err)
		require.Equal(t, "1:"+text, string(out))
	}
}
