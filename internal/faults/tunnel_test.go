//go:build unix

package faults

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A tunnel is an SSH connection whose server opens the channels of a forwarded
// socket. The server's ends are the clients'.
type tunnel struct {
	host     *ssh.ServerConn
	local    ssh.Conn
	arriving <-chan ssh.NewChannel
	wire     net.Conn
	running  sync.WaitGroup
}

// forwarded is the type of a forwarded socket's channels (OpenSSH PROTOCOL 2.4).
const forwarded = "forwarded-streamlocal@openssh.com"

func newTunnel() (*tunnel, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	wire, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	hostWire, err := listener.Accept()
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	t := &tunnel{wire: wire}
	hosted := make(chan error, 1)
	t.running.Go(func() {
		host, channels, requests, err := ssh.NewServerConn(hostWire, config)
		t.host = host
		hosted <- err
		if err == nil {
			t.running.Go(func() { ssh.DiscardRequests(requests) })
			for channel := range channels {
				_ = channel.Reject(ssh.Prohibited, "none")
			}
		}
	})
	local, channels, requests, err := ssh.NewClientConn(wire, "host", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	if err = errors.Join(err, <-hosted); err != nil {
		return nil, err
	}
	t.local, t.arriving = local, channels
	t.running.Go(func() { ssh.DiscardRequests(requests) })
	return t, nil
}

func (t *tunnel) open() (ours, theirs conn, err error) {
	type opened struct {
		ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	result := make(chan opened, 1)
	t.running.Go(func() {
		channel, requests, err := t.host.OpenChannel(forwarded, nil)
		result <- opened{channel, requests, err}
	})
	arrived, ok := <-t.arriving
	if !ok {
		return nil, nil, io.ErrUnexpectedEOF
	}
	accepted, requests, err := arrived.Accept()
	there := <-result
	if err = errors.Join(err, there.err); err != nil {
		return nil, nil, err
	}
	t.running.Go(func() { ssh.DiscardRequests(requests) })
	t.running.Go(func() { ssh.DiscardRequests(there.requests) })
	return there.Channel, accepted, nil
}

// cut ends the connection without an SSH message.
func (t *tunnel) cut() { _ = t.wire.Close() }

func (t *tunnel) close() {
	_ = t.local.Close()
	_ = t.host.Close()
	t.running.Wait()
}
