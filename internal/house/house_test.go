// Package house holds the tests of the tree itself: what may import what, and
// that every package says what it is.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "gpg-bridge/"

// mayImport lists the packages of ours that each package may import; those not
// named here, the top and the test support, may import all. Imports only go
// down: the two sides do not know each other, and SSH knows nothing of GPG.
var mayImport = map[string][]string{
	"assuan":             {},
	"internal/private":   {},
	"internal/pump":      {},
	"internal/retry":     {},
	"internal/sshconfig": {},
	"internal/share":     {"internal/private"},
	"sshfwd":             {"internal/private"},
	"internal/mux":       {"internal/private", "sshfwd"},
	"agentside":          {"assuan", "internal/private"},
	"remoteside":         {"assuan"},
}

func TestImportsOnlyGoDown(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, func(dir string, file *ast.File) {
		allowed, ruled := mayImport[dir]
		if !ruled {
			return
		}
		found[dir] = true
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if ours, ok := strings.CutPrefix(path, module); ok {
				require.Contains(t, allowed, ours, "%s imports %s", dir, ours)
			}
		}
	})
	require.Len(t, found, len(mayImport), "a package that has rules was not found")
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, func(dir string, file *ast.File) {
		documented[dir] = documented[dir] || file.Doc != nil
	})
	require.NotEmpty(t, documented)
	for dir, ok := range documented {
		require.True(t, ok, "no package doc in %s", dir)
	}
}

// eachFile visits the tree's Go files that are not tests.
func eachFile(t *testing.T, visit func(dir string, file *ast.File)) {
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
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(path)), file)
		return nil
	}))
}
