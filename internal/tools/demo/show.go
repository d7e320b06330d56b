package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// onHost is what the user of the demo types on the host.
const onHost = `set -e
git init -q project && cd project
git config user.name Demo && git config user.email demo@example.org
git config user.signingkey %s
echo hello >file && git add file
git commit -q -S -m 'signed on a host that has no secret key'
git log --show-signature --format='commit %%h: %%s'
`

// show runs the demonstration and says what happened.
func (s *machines) show(ctx context.Context, program string) error {
	fmt.Printf("laptop: secret key %s in %s, with a gpg-agent of its own\n", short(s.key.Fingerprint), s.laptop.Dir())
	fmt.Printf("host:   SSH server on %s, GNUPGHOME %s, empty\n\n", s.sshd.Addr(), s.host.Dir())
	fmt.Println("$ gpg-bridge ssh host 'git commit -S …; git log --show-signature'")
	cmd := exec.CommandContext(ctx, program, "ssh", "-F", s.path("ssh_config"), "host", fmt.Sprintf(onHost, s.key.Fingerprint))
	cmd.Env = s.laptop.Env()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("gpg-bridge ssh: %w", err)
	}
	fmt.Println()
	return s.whereWasTheKey()
}

// whereWasTheKey looks into the files themselves to show where the secret key is.
func (s *machines) whereWasTheKey() error {
	onLaptop, err := secretKeyFiles(s.laptop.Dir())
	if err != nil {
		return err
	}
	onHost, err := secretKeyFiles(s.host.Dir())
	if err != nil {
		return err
	}
	fmt.Printf("secret key files on the laptop: %d, on the host: %d\n", onLaptop, onHost)
	if onLaptop == 0 || onHost != 0 {
		return fmt.Errorf("the secret key is not where it belongs")
	}
	fmt.Println("the host's git signed with a key that never left the laptop's agent; everything above is now removed")
	return nil
}

// secretKeyFiles counts the files in which gpg-agent keeps secret keys.
func secretKeyFiles(home string) (int, error) {
	files, err := filepath.Glob(filepath.Join(home, "private-keys-v1.d", "*.key"))
	return len(files), err
}

func short(fingerprint string) string { return strings.ToUpper(fingerprint[len(fingerprint)-16:]) }
