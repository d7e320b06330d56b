package hostkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// Policy decides about the key that a server has shown: by known_hosts, then by
// StrictHostKeyChecking, and last by asking the user. Its method Check is an
// ssh.HostKeyCallback.
type Policy struct {
	ctx      context.Context
	config   *config.Config
	known    *hostKeys
	lines    []knownHostsLine
	prompter usertext.Asker
	stderr   io.Writer
	log      *slog.Logger

	mu       sync.Mutex
	accepted ssh.PublicKey // for the rekeys of this connection
	trusted  bool          // the key is one that UpdateHostKeys may start from
	address  string        // the host's address in known_hosts, with CheckHostIP; else ""
}

// New reads the known hosts. ctx bounds all that Check and Order do. Without an asker
// nobody is asked. stderr, which may be nil, is that of KnownHostsCommand.
func New(ctx context.Context, c *config.Config, p usertext.Asker, stderr io.Writer, log *slog.Logger) *Policy {
	lines, unreadable := readKnownHosts(ctx, append(append([]string(nil), c.UserKnownHostsFiles...), c.GlobalKnownHostsFiles...))
	for _, err := range unreadable {
		log.Warn("known hosts file ignored", "err", err)
	}
	return &Policy{ctx: ctx, config: c, known: newHostKeys(c, lines), lines: lines, prompter: p, stderr: stderr, log: log}
}

// Check is called in each key exchange of a connection, when the server has proved that
// it has the key; a key that differs from the first one is refused. Errors are *Error, or
// *config.Error where RevokedHostKeys or KnownHostsCommand fails.
func (p *Policy) Check(_ string, remote net.Addr, key ssh.PublicKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accepted != nil {
		if Same(p.accepted, key) {
			return nil
		}
		return p.refuse(Changed, key, nil, errors.New("it changed within the connection"))
	}
	if err := p.decide(remote, key); err != nil {
		return err
	}
	p.accepted = key
	return nil
}

// decide is verify_host_key in OpenSSH's sshconnect.c, after what ssh checks before it.
func (p *Policy) decide(remote net.Addr, key ssh.PublicKey) error {
	if err := p.checkSize(key); err != nil {
		return p.refuse(Weak, key, nil, err)
	}
	if err := p.checkRevoked(key); err != nil {
		return err
	}
	if p.config.NoHostAuthenticationForLocalhost && p.config.HostKeyAlias == "" && p.remoteIP(remote).IsLoopback() {
		p.log.Debug("host key accepted: it is this host", "fingerprint", Fingerprint(key))
		return nil
	}
	known, err := p.knownWith("HOSTNAME", key)
	if err != nil {
		return err
	}
	v, line, err := known.judge(key)
	p.log.Debug("host key", "host", p.known.name, "type", keyTypeName(key), "fingerprint", Fingerprint(key), "verdict", int(v))
	switch v {
	case hostRevoked:
		return p.refuse(Revoked, key, line, nil)
	case hostChanged:
		return p.refuse(Changed, key, line, err)
	case hostKnown:
		return p.acceptKnown(remote, key, known, line)
	}
	return p.decideUnknown(remote, key, err)
}

// acceptKnown is the case HOST_OK of check_host_key. Only where one of the user's own files
// knows the plain key by the name with the port does the host say more about its keys.
func (p *Policy) acceptKnown(remote net.Addr, key ssh.PublicKey, known *hostKeys, line *knownKey) error {
	address, err := p.checkAddress(remote, key)
	if err != nil {
		return err
	}
	if v, first := check(known.keys, Plain(key)); v == hostKnown && line.marker == markerNone {
		p.trusted = p.isOfUser(first.file) && (address.line == nil || p.isOfUser(address.line.file))
	}
	switch {
	case address.isNew && line.file == knownHostsCommandTag:
		p.notice(fmt.Sprintf("%s host key for IP address '%s' not in list of known hosts.", keyTypeName(key), p.address))
	case address.isNew:
		p.rememberAddress(key)
	case p.config.VisualHostKey:
		p.notice(fmt.Sprintf("Host key fingerprint is %s\n%s", p.fingerprint(key), randomArt(Plain(key), p.config.FingerprintHash)))
	}
	return nil
}

// isOfUser reports whether a file of known hosts is the user's own.
func (p *Policy) isOfUser(file string) bool {
	return file != knownHostsCommandTag && !slices.Contains(p.config.GlobalKnownHostsFiles, file)
}

func (p *Policy) fingerprint(key ssh.PublicKey) string {
	return fingerprint(key, p.config.FingerprintHash)
}

// knownWith is known_hosts with the keys that KnownHostsCommand adds to it.
func (p *Policy) knownWith(invocation string, key ssh.PublicKey) (*hostKeys, error) {
	if p.config.KnownHostsCommand == "" {
		return p.known, nil
	}
	keys, err := p.commandKeys(invocation, p.known.name, key)
	return p.known.with(keys), err
}

// Order returns the host key algorithms in the order to propose them in. Unless that is the
// user's own, KnownHostsCommand is then asked for the host without its port (ssh_kex2,
// order_hostkeyalgs in sshconnect2.c).
func (p *Policy) Order(algorithms []string) ([]string, error) {
	if p.config.HostKeyAlgorithmsOrdered {
		return algorithms, nil
	}
	known := p.known
	if p.config.KnownHostsCommand != "" {
		keys, err := p.commandKeys("ORDER", strings.ToLower(p.config.Hostname), nil)
		if err != nil {
			return nil, err
		}
		known = known.with(keys)
	}
	return known.order(algorithms), nil
}

// checkSize is RequiredRSASize.
func (p *Policy) checkSize(key ssh.PublicKey) error {
	if bits, ok := RSASize(key); ok && bits < p.config.RequiredRSASize {
		return fmt.Errorf("%d bits, and RequiredRSASize is %d", bits, p.config.RequiredRSASize)
	}
	return nil
}

// decideUnknown is the case HOST_NEW of check_host_key in sshconnect.c. why is
// the reason for which the key's certificate was not accepted, if it had one. As in ssh,
// where there is no file to add the key to (UserKnownHostsFile none), the user is not
// asked and the key is refused, whatever StrictHostKeyChecking is.
func (p *Policy) decideUnknown(remote net.Addr, offered ssh.PublicKey, why error) error {
	key := Plain(offered)
	if len(p.config.UserKnownHostsFiles) == 0 {
		return p.refuse(Unknown, key, nil, errors.Join(why, errNoUserFile))
	}
	switch p.config.StrictHostKeyChecking {
	case config.StrictAcceptNew, config.StrictNo:
	case config.StrictAsk:
		if p.config.BatchMode || p.prompter == nil {
			return p.refuse(Unknown, key, nil, errors.Join(why, usertext.ErrNoPrompt))
		}
		yes, err := p.ask(remote, key)
		if err != nil {
			return p.refuse(Unknown, key, nil, err)
		}
		if !yes {
			return p.refuse(Unknown, key, nil, errors.New("not confirmed"))
		}
	default:
		return p.refuse(Unknown, key, nil, why)
	}
	address, err := p.checkAddress(remote, offered)
	if err != nil {
		return err
	}
	p.trusted = p.config.StrictHostKeyChecking == config.StrictAsk // by the user's yes
	host := knownHost{name: p.known.name, key: key}
	if address.isNew {
		host.address = p.address
	}
	p.remember(host)
	return nil
}

// remember adds a host to the user's first known_hosts file, if it is certain which one
// that is. The user is told if it fails, but the key stays accepted.
func (p *Policy) remember(host knownHost) {
	names := host.name
	if host.address != "" {
		names += "," + host.address
	}
	if ok := p.add(host, "the host"); ok {
		p.notice(fmt.Sprintf("Warning: Permanently added '%s' (%s) to the list of known hosts.", names, keyTypeName(host.key)))
	}
}

// rememberAddress adds a known host's new address.
func (p *Policy) rememberAddress(key ssh.PublicKey) {
	if len(p.config.UserKnownHostsFiles) == 0 {
		return
	}
	what := fmt.Sprintf("the %s host key for IP address '%s'", keyTypeName(key), p.address)
	if p.add(knownHost{name: p.address, key: key}, what) {
		p.notice("Warning: Permanently added " + what + " to the list of known hosts.")
	}
}

func (p *Policy) add(host knownHost, what string) bool {
	file := p.config.UserKnownHostsFiles[0]
	err := errInDoubt
	if !p.config.KnownHostsInDoubt {
		err = appendKnownHost(p.ctx, file, host, p.config.HashKnownHosts)
	}
	if err != nil {
		p.notice(fmt.Sprintf("Failed to add %s to the list of known hosts (%s).\n%v", what, file, err))
	}
	return err == nil
}

func (p *Policy) notice(text string) {
	if p.prompter != nil {
		p.prompter.Notice(usertext.Info, usertext.Printable(text))
	}
}

func (p *Policy) refuse(reason Reason, key ssh.PublicKey, line *knownKey, err error) error {
	e := &Error{
		Reason: reason, Host: p.known.name, KeyType: keyTypeName(key), Fingerprint: p.fingerprint(key), Err: err,
	}
	e.Strict = p.config.StrictHostKeyChecking
	if len(p.config.UserKnownHostsFiles) > 0 {
		e.UserFile = p.config.UserKnownHostsFiles[0]
	}
	if line != nil {
		e.File, e.Line = line.file, line.number
		if line.key != nil {
			e.OffendingType = keyTypeName(line.key)
		}
	} else if len(p.config.UserKnownHostsFiles) > 0 {
		e.File = p.config.UserKnownHostsFiles[0]
	}
	return e
}
