package target

import (
	"path/filepath"
	"slices"
	"strings"

	"gpg-bridge/sshfwd/config"
)

// Absolute returns a Spec that means the same in any working directory.
func (s Spec) Absolute() Spec {
	s.ConfigFile, s.AgentSocket = AbsolutePath(s.ConfigFile), AbsolutePath(s.AgentSocket)
	s.Identities, s.Options = slices.Clone(s.Identities), slices.Clone(s.Options)
	for i, file := range s.Identities {
		s.Identities[i] = AbsolutePath(file)
	}
	for i, option := range s.Options {
		s.Options[i] = absoluteOption(option)
	}
	return s
}

// AbsolutePath makes a path mean the same in any working directory. It leaves alone what ssh
// expands, a path that begins with ~, % or $, and "none" in upper or lower case.
func AbsolutePath(path string) string {
	if path == "" || strings.EqualFold(path, "none") || strings.ContainsAny(path[:1], "~%$") {
		return path
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// absoluteOption makes the files of a -o mean the same in any working directory. An option that
// ssh would not understand stays as it is, for ssh to refuse.
func absoluteOption(option string) string {
	keyword, start, words, err := config.SplitLine(option)
	if err != nil {
		return option
	}
	switch keyword { // the keywords of ssh_config(5) whose values are files
	case "identityfile", "certificatefile", "identityagent", "userknownhostsfile", "globalknownhostsfile", "revokedhostkeys", "controlpath":
	default:
		return option
	}
	changed := false
	quotes := strings.NewReplacer(`\\`, `\\\\`, `"`, `\"`)
	for i, word := range words {
		path := AbsolutePath(word)
		if word == "SSH_AUTH_SOCK" || path == word && !strings.ContainsAny(word, " \t'\"\\#") {
			continue
		}
		changed = changed || path != word
		words[i] = `"` + quotes.Replace(path) + `"`
	}
	if !changed {
		return option
	}
	return option[:start] + strings.Join(words, " ")
}
