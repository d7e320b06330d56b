package sshfwd

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// Files whose names have spaces, or are relative, or do not exist: the list that ssh -G
// prints can be read in several ways.
var listsOfFiles = [][]string{
	{"k1", "k2"}, {"k1 k2"}, {"k1", "k2 k3"}, {"k1 k2", "k3"}, {"k1", "k2", "k3"},
	{"{DIR}/k1", "k2"}, {"{DIR}/k1 k2"}, {"{DIR}/k1", "{DIR}/k2 k3"}, {"k1  k2"}, {"k1 ", "k2"}, {"none k1"},
}

// Whichever of the listed files exist, with whatever content: our verdict is ssh's, and we
// write to the same file. In doubt, if the line that the user wrote cannot be found, we
// accept nothing that ssh refuses, and write nothing.
func TestListsOfFilesAreOpenSSHs(t *testing.T) {
	srv := startHostKeyServer(t)
	for _, c := range []struct {
		name    string
		files   []string
		content map[string]string
		strict  string
		want    string
	}{
		{"relative and missing second", []string{"k1", "k2"}, map[string]string{"k1": "OTHER"}, "accept-new", "changed"},
		{"absolute first, missing second", []string{"{DIR}/k1", "k2"}, map[string]string{"k1": "OTHER"}, "accept-new", "changed"},
		{"missing second, key known", []string{"k1", "k2"}, map[string]string{"k1": "ED25519"}, "yes", "ok"},
		{"a file that was written by mistake", []string{"k1", "k2"}, map[string]string{"k1": "OTHER", "k1 k2": "ED25519"}, "accept-new", "changed"},
		{"only the first word is a file", []string{"k1 k2"}, map[string]string{"k1": "ED25519"}, "yes", "unknown"},
		{"a new file with a blank", []string{"k1 k2"}, nil, "accept-new", "ok"},
	} {
		for _, way := range []string{"option", "doubt", "quoted", "alike"} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				list := listCase{"UserKnownHostsFile", c.files, way, c.content, c.strict}
				require.Equal(t, c.want, list.compare(t, srv))
			})
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for i := range 24 {
		c := listCase{
			keyword: pick("UserKnownHostsFile", "UserKnownHostsFile", "GlobalKnownHostsFile"),
			files:   listsOfFiles[random.IntN(len(listsOfFiles))],
			way:     []string{"file", "include", "option", "doubt", "quoted", "alike"}[i%6],
			content: map[string]string{},
			strict:  pick("yes", "accept-new"),
		}
		for _, name := range []string{"k1", "k2", "k3", "k1 k2", "k2 k3", "k1  k2", "none k1"} {
			if random.IntN(2) == 0 {
				c.content[name] = pick("ED25519", "OTHER", "EMPTY", "REVOKED", "RSA")
			}
			if c.inDoubt() && c.content[name] == "RSA" {
				c.content[name] = "ED25519" // we may ask for another key than ssh, of which ssh would say something else
			}
		}
		t.Run(c.way+" "+strconv.Itoa(i), func(t *testing.T) {
			t.Logf("seed %d: %q", seed, c)
			c.compare(t, srv)
		})
	}
}

// If the name of a file of revoked keys has a space, our verdict is ssh's, and if we do not
// find the line that the user wrote, no laxer: it is not enough that files with the parts
// of that name exist.
func TestRevokedFileWithABlankIsOpenSSHs(t *testing.T) {
	srv := startHostKeyServer(t)
	for _, way := range []string{"option", "file", "doubt"} {
		for _, content := range []map[string]string{
			{"k1": "EMPTY", "k2": "EMPTY"}, {"k1 k2": "EMPTY"}, {"k1": "EMPTY", "k2": "EMPTY", "k1 k2": "EMPTY"},
			{"k1": "BARE", "k1 k2": "EMPTY"}, {"k1": "EMPTY", "k2": "EMPTY", "k1 k2": "BARE"}, {},
		} {
			revoked := listCase{"RevokedHostKeys", []string{"k1 k2"}, way, content, "no"}
			dir := revoked.makeFiles(t, srv)
			t.Chdir(dir)
			flags := revoked.flags(t, srv, dir)
			theirs := exec.Command(env.Tool(t, "ssh"), append(flags, "host", "true")...).Run()
			ours := dialVerdict(t, config.To("host", flags...))
			require.Equal(t, content["k1 k2"] == "EMPTY", theirs == nil, "ssh, %s %q", way, content)
			require.False(t, ours == "ok" && theirs != nil, "%s %q", way, content)
			require.True(t, ours == "ok" || theirs != nil || way == "doubt", "%s %q: %s", way, content, ours)
		}
	}
}

// inDoubt are the cases in which it is not certain what ssh reads. "doubt" has the line in a
// file that we do not find. "quoted" has the keyword of a -o in quotes, and "alike" that in
// a file; both have another line, not in force, that ssh prints the same way.
func (c listCase) inDoubt() bool { return c.way == "doubt" || c.way == "alike" && len(c.files) > 1 }

// A listCase is a way to tell ssh and us in which files to look for keys.
type listCase struct {
	keyword string
	files   []string
	way     string // where the keyword stands: "option", "file", "include", or one that inDoubt explains
	content map[string]string
	strict  string
}

// compare has ssh and us connect, each in a directory of its own with files of that
// content, and returns ssh's verdict.
func (c listCase) compare(t *testing.T, srv hostKeyServer) string {
	t.Helper()
	theirs, ours := c.makeFiles(t, srv), c.makeFiles(t, srv)
	t.Chdir(theirs)
	out, err := exec.Command(env.Tool(t, "ssh"), append(c.flags(t, srv, theirs), "host", "true")...).CombinedOutput()
	want := verdictOf(string(out), err)
	t.Chdir(ours)
	before := contents(t, ours)
	flags := c.flags(t, srv, ours)
	got := dialVerdict(t, config.To("host", flags...))
	if c.inDoubt() {
		require.False(t, got == "ok" && want != "ok" && want != "unknown", "ssh says %s", want)
		require.Equal(t, before, contents(t, ours), "nothing is written")
		return want
	}
	require.Equal(t, want, got)
	require.Equal(t, contents(t, theirs), contents(t, ours))
	return want
}

// makeFiles makes a directory with the files.
func (c listCase) makeFiles(t *testing.T, srv hostKeyServer) string {
	t.Helper()
	dir := env.ShortDir(t)
	for name, key := range c.content {
		line := map[string]string{"EMPTY": "", "BARE": "{ED25519}\n", "REVOKED": "@revoked * {ED25519}\n"}
		text, special := line[key]
		if !special {
			text = "[127.0.0.1]:{PORT} {" + key + "}\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(srv.fill(text, "")), 0o600))
	}
	return dir
}

// flags are ssh's -F and -o.
func (c listCase) flags(t *testing.T, srv hostKeyServer, dir string) []string {
	t.Helper()
	var quoted []string
	for _, file := range c.files {
		quoted = append(quoted, `"`+strings.ReplaceAll(file, "{DIR}", dir)+`"`)
	}
	line := c.keyword + " " + strings.Join(quoted, " ")
	outside := env.ShortDir(t)
	main, part := filepath.Join(outside, "config"), filepath.Join(outside, "part")
	inQuotes := `"` + c.keyword + `" ` + strings.Join(quoted, " ")
	inactive := "\nHost another\n" + c.keyword + ` "` + strings.ReplaceAll(strings.Join(c.files, " "), "{DIR}", dir) + `"` + "\nHost *"
	text := map[string]string{"file": line + " # don't ask", "include": "Include " + outside + "/p*", "doubt": "Include " + outside + "/[!x]art",
		"quoted": inactive, "alike": inQuotes + inactive}[c.way]
	require.NoError(t, os.WriteFile(part, []byte("Host other host\n\t"+line+"\n"), 0o600))
	require.NoError(t, os.WriteFile(main, []byte(text+"\nInclude "+srv.ConfigFile+"\n"), 0o600))
	flags := []string{"-F", main, "-o", "StrictHostKeyChecking=" + c.strict}
	switch c.way {
	case "option":
		flags = append(flags, "-o", line)
	case "quoted":
		flags = append(flags, "-o", inQuotes)
	}
	if c.keyword != "UserKnownHostsFile" {
		flags = append(flags, "-o", "UserKnownHostsFile=/dev/null")
	}
	return flags
}

// contents are the files of a directory with their content.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = string(data)
	}
	return found
}
