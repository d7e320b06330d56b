package bridge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/pinentry"
)

// TestJudge: a prompt is cancelled only where nobody can wait for it.
func TestJudge(t *testing.T) {
	t.Parallel()
	opened := pinentry.Instant(2 * time.Hour)
	prompt := []pinentry.Process{{PID: 2, Started: opened}}
	earlier, later := []pinentry.Instant{opened.Add(-time.Minute)}, []pinentry.Instant{opened.Add(time.Minute)}
	gone := pinentry.Clients{Own: 1, Gone: 1}
	others := pinentry.Clients{Own: 1, Gone: 1, Foreign: 1}
	for name, test := range map[string]struct {
		scene
		want verdict
	}{
		"no prompt":                            {scene{clients: gone, counted: countTold, left: earlier}, promptNone},
		"left, and nobody else":                {scene{prompts: prompt, clients: gone, counted: countTold, left: earlier}, promptAbandoned},
		"left by another bridge":               {scene{prompts: prompt, clients: gone, counted: countTold}, promptServed},
		"left by another bridge, one waits":    {scene{prompts: prompt, clients: gone, counted: countTold, pending: later}, promptDoubtful},
		"left by another bridge, left later":   {scene{prompts: prompt, clients: gone, counted: countTold, left: later}, promptServed},
		"one of ours waits behind it":          {scene{prompts: prompt, clients: gone, counted: countTold, left: earlier, pending: later}, promptAbandoned},
		"one of ours may have opened it":       {scene{prompts: prompt, clients: gone, counted: countTold, left: earlier, pending: earlier}, promptServed},
		"one of ours has just begun":           {scene{prompts: prompt, clients: gone, counted: countTold, left: earlier, pending: []pinentry.Instant{opened.Add(promptSlack / 2)}}, promptServed},
		"another client":                       {scene{prompts: prompt, clients: others, counted: countTold, left: earlier}, promptDoubtful},
		"another client, left later":           {scene{prompts: prompt, clients: others, counted: countTold, left: later}, promptServed},
		"another client, one waits":            {scene{prompts: prompt, clients: others, counted: countTold, pending: later}, promptDoubtful},
		"another client, none of ours":         {scene{prompts: prompt, clients: others, counted: countTold}, promptServed},
		"another client's, nobody gone":        {scene{prompts: prompt, clients: pinentry.Clients{Own: 1, Foreign: 1}, counted: countTold, left: earlier}, promptServed},
		"nobody gone":                          {scene{prompts: prompt, clients: pinentry.Clients{Own: 1}, counted: countTold, left: earlier}, promptServed},
		"the system does not tell":             {scene{prompts: prompt, left: earlier}, promptDoubtful},
		"the system does not tell, ours later": {scene{prompts: prompt, left: later}, promptServed},
		"the system does not tell, one waits":  {scene{prompts: prompt, left: earlier, pending: earlier}, promptServed},
		"they change":                          {scene{prompts: prompt, clients: gone, counted: countUnsettled, left: earlier}, promptUnsettled},
		"they change, one waits":               {scene{prompts: prompt, clients: gone, counted: countUnsettled, left: earlier, pending: later}, promptUnsettled},
		"they change, ours":                    {scene{prompts: prompt, clients: others, counted: countUnsettled, left: earlier, pending: earlier}, promptServed},
		"they change, no prompt":               {scene{clients: gone, counted: countUnsettled, left: earlier}, promptNone},
		"the later of two counts": {scene{
			prompts: []pinentry.Process{{Started: opened.Add(-time.Hour)}, {Started: opened}}, clients: gone, counted: countTold, pending: earlier,
		}, promptServed},
	} {
		require.Equal(t, test.want, judge(test.scene), name)
	}
	two := []pinentry.Instant{opened, opened}
	require.Equal(t, 0, scene{left: two}.stays())
	require.Equal(t, 2, scene{left: two, prompts: prompt}.stays())
	require.Equal(t, 1, scene{left: two, counted: countTold, clients: gone}.stays())
	require.Equal(t, 1, scene{left: two, counted: countUnsettled, clients: gone}.stays())
	require.Equal(t, 0, scene{left: two, counted: countTold, prompts: prompt}.stays(), "the prompt is another's")
}
