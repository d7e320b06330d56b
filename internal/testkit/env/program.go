package env

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// A Program is a testing.TB for a program that is not a test, such as a benchmark, but uses
// the tests' helpers: a failure ends the process, after the cleanups. Only the methods below
// may be called.
type Program struct {
	testing.TB
	name     string
	cleanups []func()
}

// NewProgram returns a Program whose messages begin with its name.
func NewProgram(name string) *Program { return &Program{name: name} }

// Close runs the cleanups, the last first.
func (p *Program) Close() {
	for _, cleanup := range slices.Backward(p.cleanups) {
		cleanup()
	}
	p.cleanups = nil
}

// Helper does nothing.
func (p *Program) Helper() {}

// Cleanup registers what Close runs.
func (p *Program) Cleanup(cleanup func()) { p.cleanups = append(p.cleanups, cleanup) }

// Error prints and goes on.
func (p *Program) Error(args ...any) {
	fmt.Fprintln(os.Stderr, append([]any{p.name + ":"}, args...)...)
}

// Fatal prints and ends the process.
func (p *Program) Fatal(args ...any) {
	p.Error(args...)
	p.Close()
	os.Exit(1)
}

// Fatalf is Fatal with a format.
func (p *Program) Fatalf(format string, args ...any) { p.Fatal(fmt.Sprintf(format, args...)) }

// Skip is Fatal: a program that cannot do its work has failed.
func (p *Program) Skip(args ...any) { p.Fatal(args...) }
