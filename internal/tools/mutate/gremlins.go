package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const gremlins = "github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0"

// A target is a package, with the tests that are to notice its mutants.
type target struct {
	name  string
	dir   string // from the module's root
	tests string // GOFLAGS that choose the tests, none with a blank
}

// cheap are the GOFLAGS that make a run of the tests quick. Without -count=1 the first run could
// come from the cache; gremlins takes a multiple of its time as the limit, and would then take
// every slow run for one that never ends.
const cheap = "-count=1 -short -vet=off -ldflags=-w "

// onHosts skips the tests that need a host with a shell, or an agent of another version; the
// others script its answers.
const onHosts = "-skip=^Test(LoginHome|ExplainRefusal|RemoveSocket|Compat(Keyinfo|List)IsThe" +
	"|Prepare(Imports|Returns|Reports|EndsWith|Leaves|Refreshes|Login|Other|Launches|Account|Without|Fresh|Removes|Stops|Refuses))"

// targets returns the code on which users rely most: the line protocol, the two session
// machines with the guard, the parsing of the host's report, the verdict on host keys, and what
// keeps other users out.
func targets() []target {
	return []target{
		{name: "assuan", dir: "assuan"},
		{name: "agentside", dir: "agentside"},
		{name: "remoteside", dir: "remoteside"},
		{name: "compat", dir: "remoteside/compat", tests: onHosts},
		{name: "prepare", dir: "remoteside/prepare", tests: onHosts},
		{name: "private", dir: "internal/private"},
		{name: "hostkey", dir: "sshfwd/hostkey"},
	}
}

// A mutant is one change, and whether a test noticed.
type mutant struct {
	file   string // from the module's root
	kind   string // as gremlins calls it
	status string
	line   string // of the source, with « before what was changed
}

func (m mutant) String() string { return m.file + " | " + m.kind + " | " + m.line }

// mutate runs gremlins over the target.
func (t target) mutate(ctx context.Context) ([]mutant, error) {
	out, err := os.CreateTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	args := []string{"run", gremlins, "unleash", "--workers", "1", "--timeout-coefficient", "3", "--silent", "--output", out.Name()}
	cmd := exec.CommandContext(ctx, "go", append(args, t.dir)...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+cheap+t.tests)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return t.read(out)
}

// read reads what gremlins wrote.
func (t target) read(out *os.File) (found []mutant, err error) {
	var result struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.NewDecoder(out).Decode(&result); err != nil {
		return nil, fmt.Errorf("what gremlins wrote: %w", err)
	}
	for _, file := range result.Files {
		path := filepath.ToSlash(filepath.Join(t.dir, filepath.Base(file.Name)))
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range file.Mutations {
			line := lines[m.Line-1]
			marked := strings.TrimSpace(line[:m.Column-1] + "«" + line[m.Column-1:])
			found = append(found, mutant{file: path, kind: m.Type, status: m.Status, line: marked})
		}
	}
	return found, nil
}
