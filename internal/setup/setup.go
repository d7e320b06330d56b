package setup

import (
	"context"
	"path/filepath"

	"gpg-bridge/internal/ui"
)

// Run does what the options ask for, for hosts that they have been checked with: it shows
// the user the change of their ssh_config and makes it, or prints a service.
func Run(ctx context.Context, user *ui.UI, options *Options, hosts []string) error {
	hosts = unique(hosts)
	program, err := programPath()
	if err != nil {
		return err
	}
	if options.service != "" {
		return printService(user, options, program, hosts)
	}
	c := &change{ui: user, options: options, program: filepath.ToSlash(program)} // Win32-OpenSSH takes slashes, too
	if err := c.open(); err != nil {
		return err
	}
	edit := c.add
	if options.undo {
		edit = c.remove
	}
	text, err := edit(ctx, hosts)
	if err != nil {
		return err
	}
	return c.install(text)
}
