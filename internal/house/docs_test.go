package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages are the documents for engineers.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	return append(found, "../../README.md", "../../CONTRIBUTING.md")
}

// A file that a document names is there: `internal/serve/start.go`, or `start.go` alone
// where the sentence has said of which package.
func TestDocumentsNameFilesThatAreThere(t *testing.T) {
	known := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel("../..", name)
			known[filepath.ToSlash(rel)], known[path.Base(filepath.ToSlash(rel))] = true, true
		}
		return err
	}))
	named := regexp.MustCompile("`([\\w./-]+\\.(?:go|sh|py|txt))`")
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range named.FindAllSubmatch(text, -1) {
			require.True(t, known[string(match[1])], "%s names %s", page, match[1])
		}
	}
}

// What a document calls `package.Name`, `package.Type.Method` or `package.Type.Field` is
// there, too: the walks through the program are true as long as this passes.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	names := map[string]map[string]bool{} // by the package's last word
	eachFile(t, parser.SkipObjectResolution, func(dir string, file *ast.File) {
		base := path.Base(dir)
		if names[base] == nil {
			names[base] = map[string]bool{}
		}
		for _, declared := range file.Decls {
			note(names[base], declared)
		}
	})
	delete(names, "gpg-bridge")
	named := regexp.MustCompile("`(?:\\w+/)*(\\w+)\\.(\\w+(?:\\.\\w+)?)`")
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range named.FindAllSubmatch(text, -1) {
			of, isOurs := names[string(match[1])]
			if name := string(match[2]); isOurs && name != "go" && name != "sh" {
				require.True(t, of[name], "%s names %s", page, match[0])
				checked++
			}
		}
	}
	require.Greater(t, checked, 40, "the walks are no longer found")
}

// note adds what a declaration declares.
func note(names map[string]bool, declared ast.Decl) {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		names[receiver(d)+d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				noteMembers(names, s)
			}
		}
	}
}

// receiver is "Type." of a method, else "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	kind := d.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	name, _ := kind.(*ast.Ident)
	if name == nil {
		return token.ILLEGAL.String()
	}
	return name.Name + "."
}

func noteMembers(names map[string]bool, s *ast.TypeSpec) {
	var fields *ast.FieldList
	switch kind := s.Type.(type) {
	case *ast.StructType:
		fields = kind.Fields
	case *ast.InterfaceType:
		fields = kind.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names[s.Name.Name+"."+name.Name] = true
		}
	}
}
