// Package house holds the tests of the tree itself: what may import what, and
// that every package says what it is.
package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "gpg-bridge/"

var update = flag.Bool("update", false, "draw the parts in docs/architecture.md anew")

// A layer is packages of the product that may import those of the layers before theirs,
// where the list below names them.
type layer []product

// A product is a package that is part of the program.
type product struct {
	dir     string
	imports []string
}

// layers are the product from the ground up. The two sides do not know each other, and
// SSH knows nothing of GPG.
var layers = []layer{
	{
		{"assuan", nil},
		{"internal/usertext", nil},
		{"internal/proc", nil},
		{"internal/terminal", nil},
		{"internal/retry", nil},
		{"internal/notice", nil},
		{"internal/pump", nil},
		{"internal/sshflags", nil},
		{"internal/realssh", nil},
		{"internal/atomicfile", nil},
		{"sshfwd/wire", nil},
	},
	{
		{"internal/private", []string{"internal/usertext"}},
		{"sshfwd/config", []string{"internal/realssh", "internal/sshflags", "internal/usertext"}},
		{"internal/sshconfig", []string{"internal/atomicfile"}},
		{"internal/link", []string{"internal/usertext"}},
		{"remoteside", []string{"assuan"}},
		{"remoteside/prepare", []string{"internal/usertext"}},
		{"internal/pinentry", []string{"internal/retry"}},
		{"internal/ui", []string{"internal/proc", "internal/terminal", "internal/usertext"}},
	},
	{
		{"internal/link/mux", []string{"internal/link", "internal/private", "internal/proc"}},
		{"internal/share", []string{"internal/private"}},
		{"internal/memory", []string{"internal/private"}},
		{"agentside", []string{"assuan", "internal/pinentry", "internal/private", "internal/retry", "internal/usertext"}},
		{"remoteside/compat", []string{"assuan", "remoteside"}},
		{"sshfwd/hostkey", []string{"internal/atomicfile", "internal/usertext", "sshfwd/config"}},
		{"internal/signals", []string{"internal/ui"}},
		{"internal/detached", []string{"internal/private", "internal/realssh"}},
	},
	{
		{"sshfwd/login", []string{
			"internal/memory", "internal/private", "internal/usertext", "sshfwd/config", "sshfwd/hostkey",
			"sshfwd/wire",
		}},
		{"internal/bridge", []string{
			"agentside", "assuan", "internal/link", "internal/notice", "internal/pinentry", "internal/retry",
			"internal/usertext", "remoteside", "remoteside/compat", "remoteside/prepare",
		}},
	},
	{
		{"sshfwd", []string{
			"internal/link", "internal/proc", "internal/terminal", "internal/usertext", "sshfwd/config",
			"sshfwd/hostkey", "sshfwd/login", "sshfwd/wire",
		}},
		{"internal/promptguard", []string{"agentside", "internal/bridge", "internal/pinentry", "internal/retry", "internal/ui"}},
		{"internal/target", []string{"agentside", "internal/bridge", "internal/proc", "sshfwd/config"}},
	},
	{
		{"sshfwd/ports", []string{"internal/link", "internal/usertext", "sshfwd", "sshfwd/config"}},
		{"internal/setup", []string{
			"internal/detached", "internal/private", "internal/proc", "internal/sshconfig", "internal/target",
			"internal/ui", "internal/usertext", "sshfwd/config",
		}},
		{"internal/serve", []string{
			"internal/bridge", "internal/link", "internal/memory", "internal/notice", "internal/promptguard",
			"internal/retry", "internal/share", "internal/target", "internal/ui", "internal/usertext", "remoteside",
			"remoteside/prepare", "sshfwd", "sshfwd/login",
		}},
	},
	{
		{"internal/background", []string{
			"internal/bridge", "internal/detached", "internal/link/mux", "internal/private", "internal/proc",
			"internal/retry", "internal/serve", "internal/share", "internal/target", "internal/ui",
			"internal/usertext", "sshfwd/config",
		}},
		{"internal/sshmaster", []string{
			"internal/link/mux", "internal/private", "internal/retry", "internal/signals", "internal/sshflags", "internal/ui",
			"sshfwd", "sshfwd/config", "sshfwd/login",
		}},
	},
	{{"internal/sshsession", []string{
		"internal/background", "internal/bridge", "internal/link", "internal/proc", "internal/promptguard",
		"internal/realssh", "internal/retry", "internal/serve", "internal/share", "internal/signals",
		"internal/sshflags", "internal/sshmaster", "internal/target", "internal/terminal", "internal/ui",
		"internal/usertext", "remoteside/prepare", "sshfwd", "sshfwd/config", "sshfwd/ports", "sshfwd/wire",
	}}},
	{{"internal/proxy", []string{
		"internal/background", "internal/detached", "internal/notice", "internal/private", "internal/proc",
		"internal/pump", "internal/realssh", "internal/retry", "internal/share", "internal/target", "internal/ui",
		"internal/usertext", "sshfwd", "sshfwd/config",
	}}},
	{{"cmd/gpg-bridge", []string{
		"internal/background", "internal/proxy", "internal/realssh", "internal/setup", "internal/share",
		"internal/signals", "internal/sshflags", "internal/sshsession", "internal/target", "internal/ui",
		"internal/usertext", "remoteside",
	}}},
}

// support is what tests, measurements and this test are made of: it may import all, and
// the product none of it.
var support = []string{
	"internal/e2e", "internal/faults", "internal/house",
	"internal/testkit/agentsocket", "internal/testkit/asker", "internal/testkit/env", "internal/testkit/fakeagent",
	"internal/testkit/fakesshd", "internal/testkit/gpghome", "internal/testkit/linktest", "internal/testkit/release",
	"internal/testkit/sshd", "internal/testkit/sshkeys", "internal/testkit/statedoc", "internal/testkit/wan",
	"internal/tools/bench", "internal/tools/demo", "internal/tools/mutate", "internal/tools/stress",
}

// TestImportsOnlyGoDown: each package is listed, and imports what it may and nothing else.
// What it may and does not is no longer true, and is to be taken out.
func TestImportsOnlyGoDown(t *testing.T) {
	allowed := map[string][]string{}
	var below []string
	for _, l := range layers {
		var same []string
		for _, p := range l {
			for _, path := range p.imports {
				require.Contains(t, below, path, "%s may import %s, which is not below it", p.dir, path)
			}
			allowed[p.dir] = p.imports
			same = append(same, p.dir)
		}
		below = append(below, same...)
	}
	imported := map[string]map[string]bool{}
	eachFile(t, parser.ImportsOnly|parser.ParseComments, func(dir string, file *ast.File) {
		if imported[dir] == nil {
			imported[dir] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if ours, ok := strings.CutPrefix(path, module); ok {
				imported[dir][ours] = true
			}
		}
	})
	for dir, found := range imported {
		if slices.Contains(support, dir) {
			continue
		}
		require.Contains(t, allowed, dir, "the package is not listed")
		require.ElementsMatch(t, allowed[dir], slices.Collect(maps.Keys(found)), "%s imports", dir)
	}
	for dir := range allowed {
		require.Contains(t, imported, dir, "a package that has rules was not found")
	}
}

// TestPartsAreDrawn: docs/architecture.md lists the product's packages from the top down,
// each with what it says of itself.
func TestPartsAreDrawn(t *testing.T) {
	said := map[string]string{}
	eachFile(t, parser.ImportsOnly|parser.ParseComments, func(dir string, file *ast.File) {
		if file.Doc != nil {
			said[dir] = new(doc.Package).Synopsis(file.Doc.Text())
		}
	})
	var b strings.Builder
	for _, l := range slices.Backward(layers) {
		for _, p := range l {
			fmt.Fprintf(&b, "%-22s %s\n", p.dir, part(said[p.dir]))
		}
		b.WriteString("\n")
	}
	const path, begin, end = "../../docs/architecture.md", "<!-- parts: go test ./internal/house -update -->\n```\n", "\n```\n<!-- /parts -->"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	drawn, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := strings.TrimSpace(b.String())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, drawn, "run the test with -update")
}

// part is the main clause of a package's first sentence, without its name.
func part(synopsis string) string {
	words := strings.SplitN(synopsis, " ", 3)
	if len(words) < 3 || words[0] != "Package" && words[0] != "Command" {
		return synopsis
	}
	clause := strings.TrimSuffix(words[2], ".")
	if i := strings.IndexAny(clause, ":;"); i > 0 {
		clause = clause[:i]
	}
	return clause
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, parser.ImportsOnly|parser.ParseComments, func(dir string, file *ast.File) {
		documented[dir] = documented[dir] || file.Doc != nil
	})
	require.NotEmpty(t, documented)
	for dir, ok := range documented {
		require.True(t, ok, "no package doc in %s", dir)
	}
}

// eachFile visits the tree's Go files that are not tests.
func eachFile(t *testing.T, mode parser.Mode, visit func(dir string, file *ast.File)) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && slices.Contains([]string{".", "_"}, entry.Name()[:1]) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, mode)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(path)), file)
		return nil
	}))
}
