package sshfwd

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// hostKeyPolicy decides on the key that a server has shown: by known_hosts,
// then by StrictHostKeyChecking, at last by the user. Its check is an
// ssh.HostKeyCallback.
type hostKeyPolicy struct {
	ctx      context.Context
	config   *Config
	known    *hostKeys
	lines    []knownHostsLine
	prompter Prompter
	log      *slog.Logger

	mu       sync.Mutex
	accepted ssh.PublicKey // for the rekeys of this connection
}

func newHostKeyPolicy(ctx context.Context, c *Config, p Prompter, log *slog.Logger) *hostKeyPolicy {
	lines, unreadable := readKnownHosts(append(append([]string(nil), c.UserKnownHostsFiles...), c.GlobalKnownHostsFiles...))
	for _, err := range unreadable {
		log.Warn("known hosts file ignored", "err", err)
	}
	return &hostKeyPolicy{ctx: ctx, config: c, known: newHostKeys(c, lines), lines: lines, prompter: p, log: log}
}

// check is called in each key exchange, the first and the later ones. The key
// has signed; whose it is, is for us to say.
func (p *hostKeyPolicy) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accepted != nil {
		if sameKey(p.accepted, key) {
			return nil
		}
		return p.refuse(KeyChanged, key, nil, errors.New("it changed within the connection"))
	}
	if err := p.decide(remote, key); err != nil {
		return err
	}
	p.accepted = key
	return nil
}

// decide is verify_host_key in OpenSSH's sshconnect.c, with what comes before
// it.
func (p *hostKeyPolicy) decide(remote net.Addr, key ssh.PublicKey) error {
	if err := p.checkSize(key); err != nil {
		return p.refuse(KeyWeak, key, nil, err)
	}
	if err := p.checkRevoked(key); err != nil {
		return err
	}
	if p.config.NoHostAuthenticationForLocalhost && p.config.HostKeyAlias == "" && p.isLoopback(remote) {
		p.log.Debug("host key accepted: it is this host", "fingerprint", fingerprint(key))
		return nil
	}
	known, err := p.knownWith("HOSTNAME", key)
	if err != nil {
		return err
	}
	v, line, err := known.judge(key)
	p.log.Debug("host key", "host", p.known.name, "type", keyTypeName(key), "fingerprint", fingerprint(key), "verdict", int(v))
	switch v {
	case hostRevoked:
		return p.refuse(KeyRevoked, key, line, nil)
	case hostChanged:
		return p.refuse(KeyChanged, key, line, err)
	case hostKnown:
		return p.checkAddress(remote, key, line)
	}
	return p.decideUnknown(remote, key, err)
}

// knownWith adds to known_hosts what KnownHostsCommand says.
func (p *hostKeyPolicy) knownWith(invocation string, key ssh.PublicKey) (*hostKeys, error) {
	if p.config.KnownHostsCommand == "" {
		return p.known, nil
	}
	keys, err := p.commandKeys(invocation, p.known.name, key)
	return p.known.with(keys), err
}

// order puts the host key algorithms in the order to ask for. To KnownHostsCommand
// the host has no port then (order_hostkeyalgs in sshconnect2.c).
func (p *hostKeyPolicy) order(algorithms []string) ([]string, error) {
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
func (p *hostKeyPolicy) checkSize(key ssh.PublicKey) error {
	crypto, ok := plainKey(key).(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	if k, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && k.N.BitLen() < p.config.RequiredRSASize {
		return fmt.Errorf("%d bits, and RequiredRSASize is %d", k.N.BitLen(), p.config.RequiredRSASize)
	}
	return nil
}

// decideUnknown is the case HOST_NEW of check_host_key in sshconnect.c. why is
// the reason that a certificate was not accepted, if the key had one.
func (p *hostKeyPolicy) decideUnknown(remote net.Addr, offered ssh.PublicKey, why error) error {
	key := plainKey(offered)
	switch p.config.StrictHostKeyChecking {
	case StrictAcceptNew, StrictNo:
	case StrictAsk:
		if p.config.BatchMode || p.prompter == nil {
			return p.refuse(KeyUnknown, key, nil, errors.Join(why, ErrNoPrompt))
		}
		yes, err := p.ask(remote, key)
		if err != nil {
			return p.refuse(KeyUnknown, key, nil, err)
		}
		if !yes {
			return p.refuse(KeyUnknown, key, nil, errors.New("not confirmed"))
		}
	default:
		return p.refuse(KeyUnknown, key, nil, why)
	}
	if err := p.checkAddress(remote, offered, nil); err != nil {
		return err
	}
	p.remember(p.known.name, key)
	return nil
}

// ask uses ssh's words. The fingerprint, typed or pasted, is as good as a yes.
func (p *hostKeyPolicy) ask(remote net.Addr, key ssh.PublicKey) (bool, error) {
	text := fmt.Sprintf("The authenticity of host '%s (%s)' can't be established.\n%s key fingerprint is %s.\n%s\n"+
		"Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
		printableLine(p.known.name), p.addressOf(remote), keyTypeName(key), fingerprint(key), p.otherNames(key))
	return p.confirm(text, fingerprint(key))
}

// confirm asks until the answer is yes, or password, or no (confirm in
// sshconnect.c). password may be empty.
func (p *hostKeyPolicy) confirm(text, password string) (bool, error) {
	again := "Please type 'yes' or 'no': "
	if password != "" {
		again = "Please type 'yes', 'no' or the fingerprint: "
	}
	for {
		answer, err := p.prompter.Ask(p.ctx, text)
		if err != nil {
			return false, err
		}
		switch answer = strings.TrimSpace(answer); {
		case strings.EqualFold(answer, "yes") || answer != "" && answer == password:
			return true, nil
		case answer == "" || strings.EqualFold(answer, "no"):
			return false, nil
		}
		text = again
	}
}

// otherNames says where else the key is known, as ssh does.
func (p *hostKeyPolicy) otherNames(key ssh.PublicKey) string {
	var others []string
	for _, l := range p.lines {
		if k, ok := parseKnownKey(l.key); ok && l.marker == markerNone && sameKey(k, key) {
			names := l.names
			if strings.HasPrefix(names, "|") {
				names = "[hashed name]"
			}
			others = append(others, fmt.Sprintf("    %s:%d: %s", l.file, l.number, printableLine(names)))
		}
	}
	if len(others) == 0 {
		return "This key is not known by any other names."
	}
	return "This host key is known by the following other names/addresses:\n" + strings.Join(others, "\n")
}

// remember adds the key to the user's first known_hosts file. That it fails is
// told, and no reason to refuse a key that was accepted.
func (p *hostKeyPolicy) remember(name string, key ssh.PublicKey) {
	if len(p.config.UserKnownHostsFiles) == 0 {
		return
	}
	file := p.config.UserKnownHostsFiles[0]
	if err := appendKnownHost(p.ctx, file, name, key, p.config.HashKnownHosts); err != nil {
		p.notice(fmt.Sprintf("failed to add the host to the list of known hosts (%s): %v", file, err))
		return
	}
	p.notice(fmt.Sprintf("permanently added '%s' (%s) to the list of known hosts", name, keyTypeName(key)))
}

func (p *hostKeyPolicy) notice(text string) {
	if p.prompter != nil {
		p.prompter.Notice(Printable(text))
	}
}

func (p *hostKeyPolicy) refuse(reason HostKeyReason, key ssh.PublicKey, line *knownKey, err error) error {
	e := &HostKeyError{
		Reason: reason, Host: p.known.name, KeyType: keyTypeName(key), Fingerprint: fingerprint(key), Err: err,
	}
	if line != nil {
		e.File, e.Line = line.file, line.number
	} else if len(p.config.UserKnownHostsFiles) > 0 {
		e.File = p.config.UserKnownHostsFiles[0]
	}
	return e
}

func plainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

func fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(plainKey(key)) }

// keyTypeName is ssh's word for a type (sshkey_type in sshkey.c).
func keyTypeName(key ssh.PublicKey) string {
	switch t := plainKey(key).Type(); t {
	case ssh.KeyAlgoED25519:
		return "ED25519"
	case ssh.KeyAlgoRSA:
		return "RSA"
	case ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return "ECDSA"
	case ssh.KeyAlgoSKED25519:
		return "ED25519-SK"
	case ssh.KeyAlgoSKECDSA256:
		return "ECDSA-SK"
	case ssh.InsecureKeyAlgoDSA:
		return "DSA"
	default:
		return printableLine(t)
	}
}
