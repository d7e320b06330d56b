package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpg-bridge/sshfwd"
)

// An asker asks the user's ssh what a text would mean in the place of an
// ssh_config that is not touched.
type asker struct {
	path   string // the ssh_config
	system string // the file that ssh reads after it, or ""
}

// sshSettings is what ssh -G prints.
type sshSettings map[string][]string

func (s sshSettings) get(key string) string {
	if len(s[key]) == 0 || strings.EqualFold(s[key][0], "none") {
		return ""
	}
	return s[key][0]
}

// on: ssh -G has two notations of a flag.
func (s sshSettings) on(key string) bool { return s.get(key) == "yes" || s.get(key) == "true" }

// settings are what ssh makes of the text for a host. An Include that names no
// directory is looked up where ssh looks for the user's (ssh_config(5)), here as
// there.
func (a asker) settings(ctx context.Context, text []byte, host string) (sshSettings, error) {
	dir, err := os.MkdirTemp("", "gpg-bridge")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "config")
	whole := slices.Clone(text)
	if a.system != "" {
		whole = append(whole, "\nHost *\nInclude \""+a.system+"\"\n"...)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		return nil, err
	}
	settings, err := sshfwd.Dump(ctx, sshfwd.Options{Destination: host, ConfigFile: file})
	var config *sshfwd.ConfigError
	if errors.As(err, &config) && config.Err != nil {
		return nil, &askError{config, strings.ReplaceAll(config.Error(), file, a.path), host}
	}
	return settings, err
}

// An askError is ssh's complaint, about the file that the user knows.
type askError struct {
	config *sshfwd.ConfigError
	text   string
	host   string
}

func (e *askError) Error() string { return e.text }
func (e *askError) Unwrap() error { return e.config }

// Hint says what to do.
func (e *askError) Hint() string { return "correct the file until ssh -G " + e.host + " succeeds" }

// differences names what is not the same, but for the keywords that may differ.
func differences(before, after sshSettings, may ...string) (list []string) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(may, key) && !slices.Equal(before[key], after[key]) {
			list = append(list, fmt.Sprintf("%s from %q to %q", key, before[key], after[key]))
		}
	}
	return list
}
