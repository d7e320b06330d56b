package prepare

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func inspectWith(t *testing.T, h printer) (*Report, error) {
	t.Helper()
	return Inspect(t.Context(), h, Options{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}})
}

func TestInspectionIsRead(t *testing.T) {
	for verdict, want := range map[string]Report{
		"ready /s":  {Answers: AnswersNobody},
		"own 12 /s": {Answers: AnswersOwn, PID: 12},
		"held /s":   {Answers: AnswersHeld},
		"self /s":   {Answers: AnswersSelf},
	} {
		begin := "m start\nm version 2.4.7\nm " + verdict + "\n"
		for facts, told := range map[string]func(*Report){
			"": func(*Report) {},
			"m missing " + keyB + "\nm stale " + keyA + "\nm compared\n": func(r *Report) {
				r.Missing, r.Stale, r.Compared = []string{keyB}, []string{keyA}, true
			},
			"m hung list-keys\n":             func(r *Report) { r.Hung = &HungError{Program: "gpg --list-keys"} },
			"m compared\nm hung list-keys\n": func(r *Report) { r.Hung = &HungError{Program: "gpg --list-keys"} },
		} {
			want := want
			want.Socket, want.Version = "/s", "2.4.7"
			told(&want)
			got, err := inspectWith(t, printer{text: begin + facts + "m done\n"})
			require.NoError(t, err)
			require.Equal(t, want.Answers == AnswersNobody, got.Err() == nil)
			want.verdict = got.verdict
			require.Equal(t, &want, got)
		}
	}
	report, err := Inspect(t.Context(), printer{text: "m start\nm ready /s\nm done\n"}, Options{})
	require.NoError(t, err)
	require.True(t, report.Compared, "there is nothing to compare")
}

// An inspection imports nothing, and is told of nothing but the keys after its verdict.
func TestInspectionThatIsRefused(t *testing.T) {
	begin := "m start\nm held /s\n"
	for name, text := range map[string]string{
		"imported":         begin + "m missing " + keyA + "\nm compared\nm imported " + keyA + "\nm done\n",
		"a note":           begin + "m note x\nm done\n",
		"import hung":      begin + "m hung import\nm done\n",
		"what hung":        begin + "m hung\nm done\n",
		"two verdicts":     begin + "m ready /s\nm done\n",
		"version late":     begin + "m version 2.4.7\nm done\n",
		"key before it":    "m start\nm missing " + keyA + "\nm held /s\nm done\n",
		"key not asked":    begin + "m missing " + keyA[1:] + "B\nm done\n",
		"key late":         begin + "m compared\nm missing " + keyA + "\nm done\n",
		"key twice":        begin + "m missing " + keyA + "\nm stale " + keyA + "\nm done\n",
		"after done":       begin + "m done\nm compared\n",
		"after an error":   "m start\nm error file /s\nm missing " + keyA + "\nm done\n",
		"after no gpg":     "m start\nm nogpg\nm compared\nm done\n",
		"end before done":  begin + "m compared\n",
		"end with nothing": "m start\n",
	} {
		t.Run(name, func(t *testing.T) {
			report, err := inspectWith(t, printer{text: text})
			require.Error(t, err)
			require.Nil(t, report)
		})
	}
	// What an inspection is told is refused where the host is prepared.
	_, err := prepareWith(t, printer{text: begin + "m missing " + keyA + "\nm compared\nm done\n"})
	require.IsType(t, &HeldError{}, err)
}

// How an inspection ends that does not come to its end.
func TestHowTheInspectionEnded(t *testing.T) {
	_, err := inspectWith(t, printer{text: "m start\nm held /s\n", end: errPlayed})
	require.ErrorIs(t, err, errPlayed)

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := inspectWith(t, printer{text: "m start\nm held /s\n", stays: true})
		require.Equal(t, &HungError{Program: "gpg --list-keys"}, err)
		require.Equal(t, Timeout, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Inspect(ctx, printer{text: "m start\nm held /s\n", stays: true}, Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := inspectWith(t, printer{text: "m start\nm held /s\nm done\n", stays: true})
		require.NoError(t, err)
		require.Equal(t, doneGrace, time.Since(start))
	})
}

// Of the options, only those are used that change nothing.
func TestInspectionDoesNotTakeOver(t *testing.T) {
	var command, marker, extra string
	host := recorded{"m start\nm ready /s\nm missing " + keyA + "\nm compared\nm done\n", &command, &marker, &extra}
	_, err := Inspect(t.Context(), host, Options{
		Takeover: true, Evict: true, MOTD: func([]string) { t.Error("shown") }, Begun: func() { t.Error("told") },
		Wanted: []Key{{Fingerprint: keyA}},
		Export: func(context.Context, []string) ([]byte, error) { return nil, io.EOF },
	})
	require.NoError(t, err)
	require.Contains(t, command, "motd=0"+standIns[1:2]+"takeover=0"+standIns[1:2]+"evict=0"+standIns[1:2])
	for _, word := range []string{"--import", "KILLAGENT", "mkdir", "rm -f " + `"$sock"`, "--create-socketdir", "--launch"} {
		require.NotContains(t, command, word)
		require.Contains(t, commandFor("m", Options{}), word)
	}
}
