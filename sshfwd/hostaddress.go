package sshfwd

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
)

// What the host's address has to do with its key: CheckHostIP (off by default
// since OpenSSH 8.5) and NoHostAuthenticationForLocalhost. Behind a proxy the
// address is not known, and neither applies (check_host_key in sshconnect.c).

// remoteIP is the host's address, nil if it is not known.
func (p *hostKeyPolicy) remoteIP(remote net.Addr) net.IP {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok || p.config.proxied() {
		return nil
	}
	return tcp.IP
}

func (p *hostKeyPolicy) isLoopback(remote net.Addr) bool {
	ip := p.remoteIP(remote)
	return ip != nil && ip.IsLoopback()
}

// addressOf is for ssh's question about an unknown host.
func (p *hostKeyPolicy) addressOf(remote net.Addr) string {
	if ip := p.remoteIP(remote); ip != nil {
		return hostName(ip.String(), p.config.Port)
	}
	return "<no hostip for proxy command>"
}

// checkAddress is CheckHostIP for a key that the host may have: the address
// must not be known with another one. A new address is remembered, unless the
// host is only known from KnownHostsCommand. Certificates are not for
// addresses.
func (p *hostKeyPolicy) checkAddress(remote net.Addr, key ssh.PublicKey, known *knownKey) error {
	ip := p.remoteIP(remote)
	_, isCert := key.(*ssh.Certificate)
	if !p.config.CheckHostIP || isCert || ip == nil || ip.IsLoopback() {
		return nil
	}
	name := hostName(ip.String(), p.config.Port)
	if name == strings.ToLower(p.config.Hostname) {
		return nil
	}
	keys := keysFor(p.lines, name)
	if p.config.KnownHostsCommand != "" {
		more, err := p.commandKeys("ADDRESS", name, key)
		if err != nil {
			return err
		}
		keys = append(keys, more...)
	}
	switch v, line := check(keys, key); v {
	case hostRevoked:
		return p.refuse(KeyRevoked, key, line, nil)
	case hostChanged:
		return p.decideAddress(ip, key, line)
	case hostUnknown:
		if known == nil || known.file != knownHostsCommandTag {
			p.remember(name, key)
		}
	}
	return nil
}

// decideAddress is for an address that is known with another key.
func (p *hostKeyPolicy) decideAddress(ip net.IP, key ssh.PublicKey, line *knownKey) error {
	text := fmt.Sprintf("Warning: the %s host key for '%s' differs from the key for the IP address '%s'\nOffending key for IP in %s:%d",
		keyTypeName(key), printableLine(p.known.name), ip, printableLine(line.file), line.number)
	refusal := fmt.Errorf("the address %s is known with another key, and CheckHostIP is on", ip)
	switch {
	case p.config.StrictHostKeyChecking == StrictNo:
		p.notice(text)
		return nil
	case p.config.StrictHostKeyChecking != StrictAsk || p.config.BatchMode || p.prompter == nil:
		return p.refuse(KeyChanged, key, line, refusal)
	}
	yes, err := p.confirm(text+"\nAre you sure you want to continue connecting (yes/no)? ", "")
	if err != nil || !yes {
		return p.refuse(KeyChanged, key, line, refusal)
	}
	return nil
}
