package ports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"gpg-bridge/sshfwd/config"
)

// The numbers of SOCKS 4 (the SOCKS 4 and 4A memoranda) and SOCKS 5 (RFC 1928).
const (
	socks4Version  = 4
	socks4Granted  = 90
	socks4Rejected = 91

	socks5Version       = 5
	socks5NoAuth        = 0x00
	socks5NoMethod      = 0xff
	socks5Refused       = 0x05
	socks5NoCommand     = 0x07
	socks5NoAddressType = 0x08

	socksConnect = 1
	socksIPv4    = 1
	socksName    = 3
	socksIPv6    = 4
)

// maxSocksString bounds the user name and host name of SOCKS 4, which end with
// a NUL. SOCKS 5 has the same bound by its format.
const maxSocksString = 255

// errNotSocks: the client speaks something else, or asks for something we do not have.
var errNotSocks = errors.New("not a SOCKS 4 or 5 CONNECT request")

// readSocks reads a SOCKS 4, 4A or 5 request to connect, and nothing after it. It answers
// the negotiation of SOCKS 5, and a request that cannot be fulfilled. answer writes the
// reply, and must be called once, with the outcome.
func readSocks(client io.ReadWriter) (target config.Endpoint, answer func(ok bool) error, err error) {
	var version [1]byte
	if _, err := io.ReadFull(client, version[:]); err != nil {
		return config.Endpoint{}, nil, err
	}
	switch version[0] {
	case socks4Version:
		return readSocks4(client)
	case socks5Version:
		return readSocks5(client)
	}
	return config.Endpoint{}, nil, errNotSocks
}

func readSocks4(client io.ReadWriter) (config.Endpoint, func(bool) error, error) {
	var head [7]byte // command, port, address
	if _, err := io.ReadFull(client, head[:]); err != nil {
		return config.Endpoint{}, nil, err
	}
	if _, err := readSocksString(client); err != nil { // the user's name
		return config.Endpoint{}, nil, err
	}
	answer := func(ok bool) error {
		reply := [8]byte{1: socks4Rejected}
		if ok {
			reply[1] = socks4Granted
		}
		_, err := client.Write(reply[:])
		return err
	}
	target := config.Endpoint{Host: net.IP(head[3:]).String(), Port: int(binary.BigEndian.Uint16(head[1:]))}
	if isNamed := head[3] == 0 && head[4] == 0 && head[5] == 0 && head[6] != 0; isNamed { // 4A
		var err error
		if target.Host, err = readSocksString(client); err != nil {
			return config.Endpoint{}, nil, err
		}
	}
	if head[0] != socksConnect || target.Host == "" {
		_ = answer(false)
		return config.Endpoint{}, nil, errNotSocks
	}
	return target, answer, nil
}

// readSocksString reads up to a NUL, byte by byte: what follows is not for us.
func readSocksString(client io.Reader) (string, error) {
	var text []byte
	var b [1]byte
	for {
		if _, err := io.ReadFull(client, b[:]); err != nil {
			return "", err
		}
		switch {
		case b[0] == 0:
			return string(text), nil
		case len(text) == maxSocksString:
			return "", errNotSocks
		}
		text = append(text, b[0])
	}
}

func readSocks5(client io.ReadWriter) (config.Endpoint, func(bool) error, error) {
	if err := negotiateSocks5(client); err != nil {
		return config.Endpoint{}, nil, err
	}
	reply := func(code byte) error { // nobody needs the address bound
		_, err := client.Write([]byte{socks5Version, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
		return err
	}
	var head [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(client, head[:]); err != nil {
		return config.Endpoint{}, nil, err
	}
	host, err := readSocks5Host(client, head[3])
	switch {
	case errors.Is(err, errNotSocks):
		_ = reply(socks5NoAddressType)
		return config.Endpoint{}, nil, err
	case err != nil:
		return config.Endpoint{}, nil, err
	}
	var port [2]byte
	if _, err := io.ReadFull(client, port[:]); err != nil {
		return config.Endpoint{}, nil, err
	}
	if head[0] != socks5Version || head[1] != socksConnect {
		_ = reply(socks5NoCommand)
		return config.Endpoint{}, nil, errNotSocks
	}
	answer := func(ok bool) error {
		if ok {
			return reply(0)
		}
		return reply(socks5Refused)
	}
	return config.Endpoint{Host: host, Port: int(binary.BigEndian.Uint16(port[:]))}, answer, nil
}

// negotiateSocks5 settles on no authentication: the listener is the user's own.
func negotiateSocks5(client io.ReadWriter) error {
	var count [1]byte
	if _, err := io.ReadFull(client, count[:]); err != nil {
		return err
	}
	methods := make([]byte, count[0])
	if _, err := io.ReadFull(client, methods); err != nil {
		return err
	}
	for _, method := range methods {
		if method == socks5NoAuth {
			_, err := client.Write([]byte{socks5Version, socks5NoAuth})
			return err
		}
	}
	_, _ = client.Write([]byte{socks5Version, socks5NoMethod})
	return fmt.Errorf("%w: it insists on authentication", errNotSocks)
}

func readSocks5Host(client io.Reader, kind byte) (string, error) {
	size := map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[kind]
	if kind == socksName {
		var length [1]byte
		if _, err := io.ReadFull(client, length[:]); err != nil {
			return "", err
		}
		size = int(length[0])
	}
	if size == 0 {
		return "", errNotSocks
	}
	host := make([]byte, size)
	if _, err := io.ReadFull(client, host); err != nil {
		return "", err
	}
	if kind == socksName {
		return string(host), nil
	}
	return net.IP(host).String(), nil
}
