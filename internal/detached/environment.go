package detached

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"gpg-bridge/internal/private"
)

// environmentFor changes the environment of a process in the directory here into that of
// a process of ours in the private directory dir. No path in it leads to anything that
// another user can make:
//
//   - A relative path is made absolute, so that it means what it meant here. An empty
//     element of a list of directories means here, too, mostly by mistake, and is
//     left out.
//   - Programs and libraries are taken (PATH, LD_LIBRARY_PATH and the like) only from
//     places that are not open to everybody (private.CheckPlace). Who else may write
//     there, such as a group, is the user's choice.
//   - A GNUPGHOME that anybody could have made is an *environmentError: without the
//     variable, another home would be used.
//   - Any other value may hold paths that cannot be told from other text. A plain name in
//     it now means a file in dir, where nobody else can put anything; a value that leads
//     out of there with ".." is left out.
//
// here is "" if it is not known; every relative path is then left out. leftOut are the
// names of the variables that were left out, except those that name here itself.
func environmentFor(environ []string, here, dir string) (env, leftOut []string, err error) {
	e := environment{here: here}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" { // Windows' current directories of drives are "=C:=…"
			env = append(env, entry)
			continue
		}
		value, ok, err := e.variable(name, value)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case ok:
			env = append(env, name+"="+value)
		case !isHere(name):
			leftOut = append(leftOut, name)
		}
	}
	return append(env, "PWD="+dir), leftOut, nil
}

// SearchPath returns the directories of list, which has the form of PATH, that are
// absolute and not open to everybody (private.CheckPlace). It returns "" if there are none.
func SearchPath(list string) string {
	kept, _ := environment{}.search(list)
	return kept
}

// An environment is what decides a variable's new value: the directory that relative
// paths start from, or "".
type environment struct{ here string }

// isHere reports whether the variable names a shell's current or previous directory.
func isHere(name string) bool { return name == "PWD" || name == "OLDPWD" }

// The variables that are known to hold paths, by their names on Unix (environ(7),
// ld.so(8), gpg(1), XDG Base Directory Specification).
var (
	isPreload = regexp.MustCompile(`^(LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES)$`)
	isSearch  = regexp.MustCompile(`PATH$|^(PERLLIB|PERL5LIB|RUBYLIB)$`)
	isXDG     = regexp.MustCompile(`^XDG_.*_(DIR|HOME)$`)
	isXDGList = regexp.MustCompile(`^XDG_.*_DIRS$`)
	isPath    = regexp.MustCompile(`(HOME|DIR|SOCK|_FILE)$|^(BASH_ENV|GPG_TTY|SSH_TTY|TMP|TEMP)$`)
	isURL     = regexp.MustCompile(`^(https?|tcp|unix|file|ssh|npipe)://`)
	isProgram = regexp.MustCompile(`ASKPASS$|^(SHELL|GIT_SSH)$`)

	// leadsOut matches a ".." with which a path begins.
	leadsOut = regexp.MustCompile(`(^|[^/\\.])\.\.([/\\:;,=\s"']|$)`)
)

// variable returns the variable's new value; ok is false if it is to be left out.
func (e environment) variable(name, value string) (_ string, ok bool, err error) {
	upper := name
	if runtime.GOOS == "windows" {
		upper = strings.ToUpper(name)
	}
	switch {
	case isHere(upper):
		return "", false, nil
	case value == "":
		ok = true
	case upper == "GNUPGHOME":
		value, err = e.gnupgHome(value)
		return value, true, err
	case isPreload.MatchString(upper):
		value, ok = e.preload(value)
	case isSearch.MatchString(upper):
		value, ok = e.search(value)
	case isXDG.MatchString(upper):
		ok = filepath.IsAbs(value) // the specification has a relative one ignored
	case isXDGList.MatchString(upper):
		value, ok = e.list(value, func(string) string { return "" })
	case isProgram.MatchString(upper) && !strings.ContainsAny(value, separators):
		ok = true // a name, which is looked up in PATH
	case isPath.MatchString(upper) && !isURL.MatchString(value), isProgram.MatchString(upper):
		value = e.absolute(value)
		ok = value != ""
	default:
		value, ok = e.list(value, e.dotted)
	}
	return value, ok && !leadsOut.MatchString(value), nil
}

// separators separate a path's elements.
const separators = "/" + string(filepath.Separator)

// absolute makes path absolute, and returns "" if it cannot. On Windows a path that begins
// with a slash depends only on the drive, or is one of MSYS's, and is left as it is.
func (e environment) absolute(path string) string {
	switch {
	case filepath.IsAbs(path) || strings.HasPrefix(filepath.ToSlash(path), "/"):
		return path
	case e.here == "":
		return ""
	}
	return filepath.Join(e.here, path)
}

// list changes the relative elements of a list, and leaves out those that become
// "". Empty elements stay: what they mean depends on the variable.
func (e environment) list(value string, change func(string) string) (string, bool) {
	const separator = string(filepath.ListSeparator)
	var kept []string
	for part := range strings.SplitSeq(value, separator) {
		if part != "" && !filepath.IsAbs(part) {
			if part = change(part); part == "" {
				continue
			}
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, separator), len(kept) > 0
}

// dotted makes part absolute if its beginning ("./", "..") says that it is a path.
func (e environment) dotted(part string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(part), "/")
	if first == ".." || first == "." && part != "." {
		return e.absolute(part)
	}
	return part
}

// search keeps the directories of a list that are not open to everybody.
func (e environment) search(value string) (string, bool) {
	const separator = string(filepath.ListSeparator)
	var kept []string
	for part := range strings.SplitSeq(value, separator) {
		if path := e.place(part); path != "" {
			kept = append(kept, path)
		}
	}
	return strings.Join(kept, separator), len(kept) > 0
}

// preload does the same for a list of libraries. One without a slash is searched for
// in directories that other variables name.
func (e environment) preload(value string) (string, bool) {
	var kept []string
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' }) {
		if strings.ContainsAny(part, separators) {
			part = e.place(part)
		}
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ":"), len(kept) > 0
}

// place returns an element of a search list as an absolute path, or "" if it must not be
// in the list. One that begins with $ is relative to a program (ld.so(8), $ORIGIN).
func (e environment) place(part string) string {
	if part == "" || strings.HasPrefix(part, "$") {
		return part
	}
	path := e.absolute(part)
	if path == "" || private.CheckPlace(path) != nil {
		return ""
	}
	return path
}

// gnupgHome makes GNUPGHOME absolute as gpg does (GnuPG, common/homedir.c).
func (e environment) gnupgHome(value string) (string, error) {
	path := e.absolute(value)
	if path == "" {
		return "", &environmentError{"GNUPGHOME", value, errNowhere}
	}
	if err := private.CheckPlace(path); err != nil {
		return "", &environmentError{"GNUPGHOME", value, err}
	}
	return path, nil
}

var errNowhere = errors.New("the current directory is not known")

// An environmentError says that a variable leads to something that another user can make.
type environmentError struct {
	name, value string
	err         error
}

func (e *environmentError) Error() string {
	return fmt.Sprintf("%s is %q, and a bridge in the background does not use that: %v", e.name, e.value, e.err)
}

func (e *environmentError) Unwrap() error { return e.err }

// Hint says what to do.
func (e *environmentError) Hint() string {
	return "set " + e.name + " to a directory of yours that nobody else can make or exchange"
}
