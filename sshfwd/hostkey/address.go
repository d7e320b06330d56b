package hostkey

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// What the host's address has to do with its key: CheckHostIP (off by default
// since OpenSSH 8.5) and NoHostAuthenticationForLocalhost. Behind a proxy the
// address is not known, and neither applies (check_host_key in sshconnect.c).

// remoteIP is the host's address, nil if it is not known.
func (p *Policy) remoteIP(remote net.Addr) net.IP {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok || p.config.Proxied() {
		return nil
	}
	return tcp.IP
}

// addressOf is the address in ssh's question about an unknown host.
func (p *Policy) addressOf(remote net.Addr) string {
	if ip := p.remoteIP(remote); ip != nil {
		return hostName(ip.String(), p.config.Port)
	}
	return "<no hostip for proxy command>"
}

// An addressVerdict is what known_hosts says about a key and the host's address.
type addressVerdict struct {
	isNew bool      // no key is known for it
	line  *knownKey // which has the key for it, or nil
}

// checkAddress is CheckHostIP for a key that was accepted for the host's name: the
// address must not be known with another key. Certificates are not checked: they are issued
// for names. It sets address.
func (p *Policy) checkAddress(remote net.Addr, key ssh.PublicKey) (verdict addressVerdict, err error) {
	ip := p.remoteIP(remote)
	if !p.config.CheckHostIP || ip == nil || ip.IsLoopback() {
		return verdict, nil
	}
	name := hostName(ip.String(), p.config.Port)
	if name == strings.ToLower(p.config.Hostname) {
		return verdict, nil
	}
	p.address = name
	if _, isCert := key.(*ssh.Certificate); isCert {
		return verdict, nil
	}
	keys := keysFor(p.lines, name)
	if p.config.KnownHostsCommand != "" {
		more, err := p.commandKeys("ADDRESS", name, key)
		if err != nil {
			return verdict, err
		}
		keys = append(keys, more...)
	}
	v, line := check(keys, key)
	if p.config.KnownHostsInDoubt {
		v, line = checkEachFile(keys, key)
	}
	switch v {
	case hostRevoked:
		return verdict, p.refuse(Revoked, key, line, nil)
	case hostChanged:
		return verdict, p.decideAddress(ip, key, line)
	case hostKnown:
		verdict.line = line
	}
	verdict.isNew = v == hostUnknown
	return verdict, nil
}

// decideAddress decides about an address that is known with another key: by
// StrictHostKeyChecking, or by asking.
func (p *Policy) decideAddress(ip net.IP, key ssh.PublicKey, line *knownKey) error {
	text := fmt.Sprintf("Warning: the %s host key for '%s' differs from the key for the IP address '%s'\nOffending key for IP in %s:%d",
		keyTypeName(key), usertext.Line(p.known.name), ip, usertext.Line(line.file), line.number)
	refusal := fmt.Errorf("the address %s is known with another key, and CheckHostIP is on", ip)
	switch {
	case p.config.StrictHostKeyChecking == config.StrictNo:
		p.notice(text)
		return nil
	case p.config.StrictHostKeyChecking != config.StrictAsk || p.config.BatchMode || p.prompter == nil:
		return p.refuse(Changed, key, line, refusal)
	}
	yes, err := p.confirm(text+"\nAre you sure you want to continue connecting (yes/no)? ", "")
	if err != nil || !yes {
		return p.refuse(Changed, key, line, refusal)
	}
	return nil
}
