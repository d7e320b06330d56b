package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpg-bridge/sshfwd/config"
)

// An evaluator asks the user's ssh what it would do if its ssh_config had another text.
// The file itself is not touched.
type evaluator struct {
	path   string // the ssh_config
	system string // the file that ssh reads after it, or ""
}

// settings returns what ssh makes of the text for a host. A relative Include in it means
// what it means in the user's file: ssh looks it up in ~/.ssh (ssh_config(5)).
func (e evaluator) settings(ctx context.Context, text []byte, host string) (config.Settings, error) {
	dir, err := os.MkdirTemp("", "gpg-bridge")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "config")
	whole := slices.Clone(text)
	if e.system != "" {
		whole = append(whole, "\nHost *\nInclude \""+e.system+"\"\n"...)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		return nil, err
	}
	settings, err := config.Dump(ctx, config.To(host, "-F", file))
	var resolved *config.Error
	if errors.As(err, &resolved) && resolved.Err != nil {
		return nil, &evaluationError{resolved, strings.ReplaceAll(resolved.Error(), file, e.path), host}
	}
	return settings, err
}

// An evaluationError is ssh's complaint about a text, as one about the user's file.
type evaluationError struct {
	config *config.Error
	text   string
	host   string
}

func (e *evaluationError) Error() string { return e.text }
func (e *evaluationError) Unwrap() error { return e.config }

// Hint says what to do.
func (e *evaluationError) Hint() string {
	return "correct the file until ssh -G " + e.host + " succeeds"
}

// differences lists the keywords whose values differ, except for those that may.
func differences(before, after config.Settings, may ...string) (list []string) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(may, key) && !slices.Equal(before[key], after[key]) {
			list = append(list, fmt.Sprintf("%s from %q to %q", key, before[key], after[key]))
		}
	}
	return list
}
