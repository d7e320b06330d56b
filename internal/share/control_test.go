//go:build unix

package share

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// page is docs/control.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/control.md")
	require.NoError(t, err)
	return string(text)
}

// section is the part of the page from one heading to the next.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// firstCells are the words in backquotes in the first column of the tables.
func firstCells(text string) []string {
	var cells []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` ").FindAllStringSubmatch(text, -1) {
		cells = append(cells, match[1])
	}
	return cells
}

// fieldsOf are the names of a type's fields in JSON, and the column for their types.
func fieldsOf(typ reflect.Type, prefix string) (rows []string) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner, kind := field.Type, ""
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case inner == reflect.TypeFor[time.Time]():
			kind = "time"
		case inner.Kind() == reflect.Struct:
			kind = "object"
		case inner.Kind() == reflect.String:
			kind = "string"
		case inner.Kind() == reflect.Bool:
			kind = "boolean"
		default:
			kind = "number"
		}
		if option == "omitempty" {
			kind += ", may be missing"
		}
		rows = append(rows, "| `"+prefix+name+"` | "+kind+" | ")
		if kind == "object, may be missing" {
			rows = append(rows, fieldsOf(inner, prefix+name+".")...)
		}
	}
	return rows
}

// TestStatusIsDocumented: every field in its order, with its type, and no other;
// and every state.
func TestStatusIsDocumented(t *testing.T) {
	text := section(t, "The status")
	fields, states, found := strings.Cut(text, "| state | |")
	require.True(t, found)
	want := fieldsOf(reflect.TypeFor[Status](), "")
	var got []string
	for line := range strings.Lines(fields) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	require.Len(t, got, len(want))
	for i, row := range want {
		require.True(t, strings.HasPrefix(got[i], row), "%q is not documented by %q", row, got[i])
	}
	require.ElementsMatch(t, firstCells(states), []string{
		string(Connecting), string(Up), string(Taken), string(Silent), string(NoAgent), string(Blocked), string(Waiting), string(Stopping), string(Standby), string(Gone),
	})
	for _, word := range []string{string(Background), string(Session), string(TakenDown), string(HandedOver), OutcomeOK, OutcomeUnanswered} {
		require.Contains(t, fields, "`"+word+"`")
	}
}

func TestProtocolIsDocumented(t *testing.T) {
	text := section(t, "The protocol")
	verbs := []string{string(askStatus), string(askWatch), string(askLease), string(askPin), string(askYield), string(askReplace), string(askStop)}
	require.Equal(t, verbs, firstCells(text))
	line, err := json.Marshal(request{Version, askStatus})
	require.NoError(t, err)
	require.Contains(t, text, string(line))
	require.Contains(t, text, "`version` is 1.")
	require.Equal(t, 1, Version)
	require.Equal(t, []string{"ID" + lockSuffix, "ID" + pidSuffix, "ID" + aliveSuffix, "ID" + socketSuffix, "ID.log"}, slices.DeleteFunc(firstCells(section(t, "Where")), func(s string) bool {
		return !strings.HasPrefix(s, "ID.")
	}))
}

// TestByHand runs the page's own example.
func TestByHand(t *testing.T) {
	env.Tool(t, "socat")
	runtime := env.ShortDir(t)
	d, err := OpenAt(runtime + "/gpg-bridge")
	require.NoError(t, err)
	defer d.Close()
	hold(t, d, in(Up))
	_, script, _ := strings.Cut(section(t, "By hand"), "```sh\n")
	script, _, _ = strings.Cut(script, "\n\n")
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+runtime)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var status Status
	require.NoError(t, json.Unmarshal(out, &status), "%s", out)
	require.Equal(t, testID, status.ID)
	require.Equal(t, Up, status.State)
}
