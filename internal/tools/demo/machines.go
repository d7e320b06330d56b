package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

const userID = "Demo <demo@example.org>"

// machines are the two machines: the laptop with a key, and the host.
type machines struct {
	dir    string // the host's home, and the files of the laptop's ssh
	laptop *gpghome.Home
	host   *gpghome.Home
	key    gpghome.Key
	sshd   *fakesshd.Server
}

// setUp makes the machines. The caller must call tearDown on them even after an error.
func setUp(ctx context.Context) (*machines, error) {
	s := &machines{}
	for _, step := range []func(context.Context) error{s.makeHomes, s.makeKey, s.startServer, s.writeConfig} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// makeHomes stays in /tmp, where socket paths are short enough.
func (s *machines) makeHomes(context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("/tmp", "gbdemo"); err != nil {
		return err
	}
	if s.laptop, err = gpghome.New(); err != nil {
		return err
	}
	s.host, err = gpghome.New()
	return err
}

func (s *machines) makeKey(ctx context.Context) (err error) {
	s.key, err = s.laptop.GenerateKey(ctx, gpghome.KeySpec{UserID: userID})
	return err
}

func (s *machines) startServer(context.Context) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "demo")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path("id_ed25519"), pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	authorized, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	sshd := &fakesshd.Server{
		AuthorizedKeys: []ssh.PublicKey{authorized},
		Env:            append(s.host.Env(), "HOME="+s.dir),
		Dir:            s.dir,
	}
	if err := sshd.Start(); err != nil {
		return err
	}
	s.sshd = sshd
	return nil
}

func (s *machines) writeConfig(context.Context) error {
	host, port, err := net.SplitHostPort(s.sshd.Addr())
	if err != nil {
		return err
	}
	known := knownhosts.Line([]string{knownhosts.Normalize(s.sshd.Addr())}, s.sshd.HostKey.PublicKey())
	config := fmt.Sprintf("Host host\n  HostName %s\n  Port %s\n  User demo\n  IdentityFile %s\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile %s\n",
		host, port, s.path("id_ed25519"), s.path("known_hosts"))
	return errors.Join(
		os.WriteFile(s.path("known_hosts"), []byte(known+"\n"), 0o600),
		os.WriteFile(s.path("ssh_config"), []byte(config), 0o600),
	)
}

func (s *machines) path(name string) string { return filepath.Join(s.dir, name) }

// tearDown ends what runs and removes what was written.
func (s *machines) tearDown() error {
	var errs []error
	if s.sshd != nil {
		errs = append(errs, s.sshd.Close())
	}
	for _, home := range []*gpghome.Home{s.host, s.laptop} {
		if home != nil {
			errs = append(errs, home.Close())
		}
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
