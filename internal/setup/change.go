package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"gpg-bridge/internal/sshconfig"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// A change is that of one ssh_config file, under way: open finds the file, add or remove
// makes its new text, and install writes it.
type change struct {
	ui      *ui.UI
	options *Options
	program string // as the lines name it

	file      *sshconfig.File
	flagF     string // the proxy's -F: the file, or "" for the one that ssh reads by itself
	evaluator evaluator
	notes     []string // what the user is told with the change
}

// open opens the file: that of -F, or the user's own.
func (c *change) open() error {
	usual, err := config.ExpandTilde("~/.ssh/config") // of the home in the user database, where ssh looks
	if err != nil {
		return err
	}
	path := usual
	if named := c.options.spec.ConfigFile; named != "" {
		if path, err = filepath.Abs(named); err != nil {
			return err
		}
	}
	c.evaluator.path = path
	if path == usual {
		c.evaluator.system = systemConfig()
	} else {
		c.flagF = path
	}
	c.file, err = sshconfig.Open(path)
	return err
}

// systemConfig is the file that ssh reads after the user's, or "" if it does not exist.
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

// text is the file's content.
func (c *change) text() (*sshconfig.Text, error) {
	text, err := sshconfig.Parse(c.file.Data())
	if err != nil {
		return nil, &sshconfig.FileError{Path: c.file.Path(), Problem: err.Error(), Advice: usertext.Hint(err)}
	}
	return text, nil
}

// remove returns the text without our lines for the hosts, or without any if none is named.
func (c *change) remove(ctx context.Context, hosts []string) (*sshconfig.Text, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		hosts = text.Hosts()
	}
	for _, host := range hosts {
		if !text.Remove(host) {
			c.ui.Tell(fmt.Sprintf("%q holds no line of gpg-bridge for %s", c.file.Path(), host))
		}
	}
	if text.HasBlock() && len(text.Hosts()) == 0 {
		c.ui.Tell(fmt.Sprintf("somebody else's lines stay between the marks of gpg-bridge in %q", c.file.Path()))
	}
	return text, c.confirmRemoved(ctx, text)
}

// confirmRemoved has ssh read the text without our lines. It may refuse it only if it
// refuses the text with them, too.
func (c *change) confirmRemoved(ctx context.Context, text *sshconfig.Text) error {
	_, err := c.evaluator.settings(ctx, text.Bytes(), "localhost")
	if err == nil || errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	if _, before := c.evaluator.settings(ctx, c.file.Data(), "localhost"); before != nil {
		return ctx.Err()
	}
	return err
}

// install shows the change and makes it.
func (c *change) install(text *sshconfig.Text) error {
	path, before, after := c.file.Path(), c.file.Data(), text.Bytes()
	if bytes.Equal(before, after) {
		c.ui.Tell(fmt.Sprintf("nothing to change in %q", path))
		return nil
	}
	if err := c.ui.Output(sshconfig.Diff(path, before, after)); err != nil {
		return err
	}
	for _, note := range c.notes {
		c.ui.Tell(note)
	}
	if c.options.dryRun {
		return nil
	}
	said := fmt.Sprintf("%q is changed", path)
	if len(withoutOurs(before)) > 0 {
		backup, err := c.file.Backup(func(old []byte) bool { return bytes.Equal(withoutOurs(old), withoutOurs(before)) })
		if err != nil {
			return err
		}
		said += fmt.Sprintf("; your own lines are also in %q", backup)
	}
	replace := func() error { return c.file.Replace(after) }
	if text.IsNothing() {
		replace = c.file.Remove
	}
	if err := replace(); err != nil {
		return err
	}
	c.ui.Tell(said)
	return nil
}

// withoutOurs returns what of an ssh_config is the user's, and must not be lost.
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
