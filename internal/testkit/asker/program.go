package asker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A Program is a program for SSH_ASKPASS: a shell script in a directory of its own.
type Program struct {
	t   *testing.T
	dir string
}

// NewProgram makes a Program that records its prompts and answers "sesame".
func NewProgram(t *testing.T) *Program {
	t.Helper()
	p := &Program{t, env.ShortDir(t)}
	p.Script(`echo "$SSH_ASKPASS_PROMPT|$1" >>"$0.called"; echo sesame`)
	return p
}

// Path returns the path of a file beside the program; the program's own name is "askpass".
func (p *Program) Path(name string) string { return filepath.Join(p.dir, name) }

// Script has the program run these commands instead. Called returns what they append to
// $0.called.
func (p *Program) Script(commands string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.Path("askpass"), []byte("#!/bin/sh\n"+commands+"\n"), 0o700))
}

// Called returns what the program has recorded, "" before it was called.
func (p *Program) Called() string {
	data, _ := os.ReadFile(p.Path("askpass.called"))
	return string(data)
}
