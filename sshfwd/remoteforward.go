package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// forwardedTCP is the type of the channels of a tcpip-forward (RFC 4254
// section 7.2).
const forwardedTCP = "forwarded-tcpip"

// ask has the server listen for a RemoteForward. The error is a
// *ForwardFailedError.
func (f *portForwards) ask(ctx context.Context, spec ForwardSpec) error {
	open := f.askPort
	if spec.Listen.Path != "" {
		open = f.askSocket
	}
	err := open(ctx, spec)
	var refused *ForwardRefusedError
	switch {
	case errors.As(err, &refused):
		return &ForwardFailedError{Spec: spec, Remote: true}
	case err != nil:
		return &ForwardFailedError{Spec: spec, Remote: true, Err: err}
	}
	return nil
}

func (f *portForwards) askSocket(ctx context.Context, spec ForwardSpec) error {
	forward, err := f.client.Forward(ctx, spec.Listen.Path, func(_ context.Context, conn Conn) {
		if spec.isSocks() {
			f.serveSocks(conn.(*channelConn))
			return
		}
		sock, err := f.dial(spec.Connect)
		if err != nil {
			f.failed(err)
			return
		}
		splice(f.ctx, sock, conn.(*channelConn))
	})
	if err == nil {
		f.spawn(forward.Wait)
	}
	return err
}

// askPort registers the port before it asks, since connections may come before
// the reply. A port that the server chooses is known by the reply: until then
// the channels that come wait for granting.
func (f *portForwards) askPort(ctx context.Context, spec ForwardSpec) error {
	f.granting.Lock()
	defer f.granting.Unlock()
	if err := f.handleChannels(); err != nil {
		return err
	}
	at := Endpoint{Host: rfwdBindHost(spec.Listen.Host), Port: spec.Listen.Port}
	if _, taken := f.ports[at]; taken {
		return errors.New("this port is forwarded already")
	}
	if at.Port != 0 {
		f.ports[at] = spec
	}
	granted, err := f.requestPort(ctx, at)
	switch {
	case err != nil:
		delete(f.ports, at)
	case at.Port == 0:
		f.ports[Endpoint{Host: at.Host, Port: granted}] = spec
		f.events.Allocated(spec, granted)
	}
	return err
}

// requestPort sends the request and waits for its answer, which is the port. A
// grant that comes too late is for nobody: its channels are refused.
func (f *portForwards) requestPort(ctx context.Context, at Endpoint) (int, error) {
	type answer struct {
		ok   bool
		data []byte
		err  error
	}
	answers := make(chan answer, 1)
	request := ssh.Marshal(struct {
		Host string
		Port uint32
	}{at.Host, uint32(at.Port)})
	if !f.spawn(func() {
		ok, data, err := f.client.conn.SendRequest("tcpip-forward", true, request)
		answers <- answer{ok, data, err}
	}) {
		return 0, errConnectionEnded
	}
	select {
	case a := <-answers:
		var reply struct{ Port uint32 }
		switch {
		case a.err != nil:
			return 0, errConnectionEnded
		case !a.ok:
			return 0, &ForwardRefusedError{}
		case at.Port == 0 && (ssh.Unmarshal(a.data, &reply) != nil || reply.Port == 0 || reply.Port > 65535):
			return 0, errors.New("the server did not say which port it chose")
		}
		return int(reply.Port), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// rfwdBindHost is what the server is asked to listen on
// (channel_rfwd_bind_host in channels.c).
func rfwdBindHost(host string) string {
	switch host {
	case "":
		return "localhost"
	case "*":
		return ""
	}
	return host
}

// handleChannels registers for the server's channels at the first call.
func (f *portForwards) handleChannels() error {
	if f.handling {
		return nil
	}
	in := f.client.conn.HandleChannelOpen(forwardedTCP)
	if in == nil {
		return ErrForwarderTaken
	}
	f.handling = true
	f.spawn(func() {
		for newCh := range in {
			f.dispatch(newCh)
		}
	})
	return nil
}

// dispatch must not block, or the whole connection would.
func (f *portForwards) dispatch(newCh ssh.NewChannel) {
	select {
	case f.slots <- struct{}{}:
		f.wg.Go(func() {
			defer func() { <-f.slots }()
			f.serveRemote(newCh)
		})
	default:
		_ = newCh.Reject(ssh.ResourceShortage, "too many connections")
	}
}

// serveRemote connects one channel to its forward's target. A channel for a
// port that was not asked for is refused.
func (f *portForwards) serveRemote(newCh ssh.NewChannel) {
	var payload tcpChannel
	if err := ssh.Unmarshal(newCh.ExtraData(), &payload); err != nil {
		_ = newCh.Reject(ssh.Prohibited, "malformed request")
		return
	}
	f.granting.RLock()
	spec, ok := f.ports[Endpoint{Host: payload.Host, Port: int(payload.Port)}]
	f.granting.RUnlock()
	if !ok || payload.Port == 0 {
		_ = newCh.Reject(ssh.Prohibited, "no such forward")
		return
	}
	if spec.isSocks() {
		if ch, reqs, err := newCh.Accept(); err == nil {
			f.serveSocks(newChannelConn(ch, reqs))
		}
		return
	}
	sock, err := f.dial(spec.Connect)
	if err != nil {
		_ = newCh.Reject(ssh.ConnectionFailed, "connect failed")
		f.failed(err)
		return
	}
	ch, reqs, err := newCh.Accept()
	if err != nil {
		_ = sock.Close()
		return
	}
	splice(f.ctx, sock, newChannelConn(ch, reqs))
}

// dial connects to the target of a RemoteForward, on this side.
func (f *portForwards) dial(target Endpoint) (net.Conn, error) {
	network, address := "tcp", net.JoinHostPort(target.Host, strconv.Itoa(target.Port))
	if target.Path != "" {
		network, address = "unix", target.Path
	}
	sock, err := new(net.Dialer).DialContext(f.ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %q for the host: %w", target, rootCause(err))
	}
	return sock, nil
}
