package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckDetached refuses paths that lead out of the directory that a detached process
// runs in (Options.Detached), and relative paths of what must not be looked up in
// there: programs, and the files that say which hosts' keys are trusted. Errors are
// *Error.
func (c *Config) CheckDetached() error {
	if !c.Detached {
		return nil
	}
	command := c.ProxyCommand
	for i, word := range strings.Fields(command) {
		word = strings.Trim(word, `"'`)
		isProgram := i == 0 || i == 1 && strings.HasPrefix(command, "exec ")
		if leadsOut(word) || isProgram && isRelativeProgram(word) {
			return dependsOnDirectory("ProxyCommand", command)
		}
	}
	for keyword, paths := range map[string][]string{
		"IdentityFile": c.IdentityFiles, "CertificateFile": c.CertificateFiles, "IdentityAgent": {c.IdentityAgent},
	} {
		if i := slices.IndexFunc(paths, leadsOut); i >= 0 {
			return dependsOnDirectory(keyword, paths[i])
		}
	}
	for keyword, paths := range map[string][]string{
		"UserKnownHostsFile": c.UserKnownHostsFiles, "GlobalKnownHostsFile": c.GlobalKnownHostsFiles,
		"RevokedHostKeys": c.RevokedHostKeys,
	} {
		if i := slices.IndexFunc(paths, isRelative); i >= 0 {
			return dependsOnDirectory(keyword, paths[i])
		}
	}
	return nil
}

// leadsOut reports whether a relative path leaves the directory it is looked up in. That
// directory is private, and so is whatever is below it.
func leadsOut(path string) bool {
	path = filepath.ToSlash(path)
	return !filepath.IsAbs(path) && slices.Contains(strings.Split(path, "/"), "..")
}

// isRelative reports whether a file's path depends on the current directory. On Windows,
// ssh prints __PROGRAMDATA__ for the start of an absolute one.
func isRelative(path string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return !filepath.IsAbs(path) && first != "" && first[0] != '~' && first != "__PROGRAMDATA__" && path != os.DevNull
}

// isRelativeProgram reports whether a command's first word is a relative path: a name
// without a slash is looked up in PATH, and ~, $ and ` are the shell's to expand.
func isRelativeProgram(word string) bool {
	word = filepath.ToSlash(word)
	return strings.Contains(word, "/") && !filepath.IsAbs(word) && !strings.ContainsAny(word[:1], "/~$`%")
}

func dependsOnDirectory(keyword, value string) error {
	return &Error{
		Problem: fmt.Sprintf("%s %q depends on the directory that ssh is called in", keyword, value),
		Advice:  "write the whole path in ssh_config, or use gpg-bridge ssh",
	}
}
