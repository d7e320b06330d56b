package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"gpg-bridge/internal/sshconfig"
)

// setup is one run that changes an ssh_config.
type setup struct {
	ui      *ui
	flags   *setupFlags
	program string

	file  *sshconfig.File
	ask   asker
	notes []string // what there is to say with a change
}

// open finds the file: the one of -F, or the user's own, which ssh looks for in
// the home directory of the user database, whatever HOME says.
func (s *setup) open() error {
	usual, err := userConfig()
	if err != nil {
		return err
	}
	path := usual
	if named := s.flags.proxy.config; named != "" {
		if path, err = filepath.Abs(named); err != nil {
			return err
		}
	}
	s.flags.proxy.config = path
	s.ask = asker{path: path}
	if path == usual {
		s.flags.proxy.config = ""
		s.ask.system = systemConfig()
	}
	s.file, err = sshconfig.Open(path)
	return err
}

func userConfig() (string, error) {
	home, err := os.UserHomeDir()
	if u, lookup := user.LookupId(strconv.Itoa(os.Getuid())); lookup == nil && u.HomeDir != "" {
		home, err = u.HomeDir, nil
	}
	return filepath.Join(home, ".ssh", "config"), err
}

// systemConfig is the file whose lines come after the user's, or "".
func systemConfig() string {
	path := "/etc/ssh/ssh_config"
	if runtime.GOOS == "windows" {
		path = filepath.Join(os.Getenv("ProgramData"), "ssh", "ssh_config")
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return filepath.ToSlash(path)
}

func (s *setup) text() (*sshconfig.Text, error) {
	text, err := sshconfig.Parse(s.file.Data())
	if err != nil {
		return nil, &sshconfig.FileError{Path: s.file.Path(), Problem: err.Error(), Advice: hintOf(err)}
	}
	return text, nil
}

// undo gives the text without our lines.
func (s *setup) undo(ctx context.Context, hosts []string) (*sshconfig.Text, error) {
	text, err := s.text()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		hosts = text.Hosts()
	}
	for _, host := range hosts {
		if !text.Remove(host) {
			s.ui.tell(fmt.Sprintf("%q holds no line of gpg-bridge for %s", s.file.Path(), host))
		}
	}
	if text.HasBlock() && len(text.Hosts()) == 0 {
		s.ui.tell(fmt.Sprintf("somebody else's lines stay between the marks of gpg-bridge in %q", s.file.Path()))
	}
	return text, s.checkUndone(ctx, text)
}

// checkUndone: the lines that are left must not be worse than all of them were.
func (s *setup) checkUndone(ctx context.Context, text *sshconfig.Text) error {
	_, err := s.ask.settings(ctx, text.Bytes(), "localhost")
	if err == nil || errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	if _, before := s.ask.settings(ctx, s.file.Data(), "localhost"); before != nil {
		return ctx.Err()
	}
	return err
}

// install shows the change and makes it.
func (s *setup) install(text *sshconfig.Text) error {
	path, before, after := s.file.Path(), s.file.Data(), text.Bytes()
	if bytes.Equal(before, after) {
		s.ui.tell(fmt.Sprintf("nothing to change in %q", path))
		return nil
	}
	if _, err := io.WriteString(s.ui.stdout, sshconfig.Diff(path, before, after)); err != nil {
		return err
	}
	for _, note := range s.notes {
		s.ui.tell(note)
	}
	if s.flags.dryRun {
		return nil
	}
	said := fmt.Sprintf("%q is changed", path)
	if len(withoutOurs(before)) > 0 {
		backup, err := s.file.Backup(func(old []byte) bool { return bytes.Equal(withoutOurs(old), withoutOurs(before)) })
		if err != nil {
			return err
		}
		said += fmt.Sprintf("; your own lines are also in %q", backup)
	}
	replace := func() error { return s.file.Replace(after) }
	if text.IsNothing() {
		replace = s.file.Remove
	}
	if err := replace(); err != nil {
		return err
	}
	s.ui.tell(said)
	return nil
}

// withoutOurs is what of an ssh_config is not ours, and can be lost.
func withoutOurs(data []byte) []byte {
	text, err := sshconfig.Parse(data)
	if err != nil {
		return data
	}
	for _, host := range text.Hosts() {
		text.Remove(host)
	}
	return text.Bytes()
}

// A setupError says why the lines of a host are not written.
type setupError struct {
	host    string
	problem string
	advice  string
}

func (e *setupError) Error() string { return e.host + ": " + e.problem }

// Hint says what to do.
func (e *setupError) Hint() string { return e.advice }
