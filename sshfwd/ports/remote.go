package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

// ask has the server listen for a RemoteForward. The error is a
// *FailedError.
func (f *forwards) ask(ctx context.Context, spec config.ForwardSpec) error {
	open := f.askPort
	if spec.Listen.Path != "" {
		open = f.askSocket
	}
	err := open(ctx, spec)
	var refused *link.RefusedError
	switch {
	case errors.As(err, &refused):
		return &FailedError{Spec: spec, Remote: true}
	case err != nil:
		return &FailedError{Spec: spec, Remote: true, Err: err}
	}
	return nil
}

func (f *forwards) askSocket(ctx context.Context, spec config.ForwardSpec) error {
	forward, err := f.client.ForwardUnix(ctx, spec.Listen.Path, func(_ context.Context, conn *sshfwd.Conn) {
		if spec.IsSocks() {
			f.serveSocks(conn)
			return
		}
		sock, err := f.dial(spec.Connect)
		if err != nil {
			f.failed(err)
			return
		}
		conn.Splice(f.ctx, sock)
	})
	if err == nil {
		f.spawn(forward.Wait)
	}
	return err
}

// askPort has the server listen on a port. It registers the port before it asks, since
// connections may come before the reply. A port that the server chooses is known only from
// the reply: until then incoming channels wait for the lock granting.
func (f *forwards) askPort(ctx context.Context, spec config.ForwardSpec) error {
	f.granting.Lock()
	defer f.granting.Unlock()
	if err := f.handleChannels(); err != nil {
		return err
	}
	at := config.Endpoint{Host: rfwdBindHost(spec.Listen.Host), Port: spec.Listen.Port}
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
		f.ports[config.Endpoint{Host: at.Host, Port: granted}] = spec
		f.events.Allocated(spec, granted)
	}
	return err
}

// requestPort sends the request and waits for the reply, which names the port. If the reply
// comes after ctx has ended, the port's channels are refused.
func (f *forwards) requestPort(ctx context.Context, at config.Endpoint) (int, error) {
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
		ok, data, err := f.client.Request("tcpip-forward", request)
		answers <- answer{ok, data, err}
	}) {
		return 0, sshfwd.ErrConnectionEnded
	}
	select {
	case a := <-answers:
		var reply struct{ Port uint32 }
		switch {
		case a.err != nil:
			return 0, sshfwd.ErrConnectionEnded
		case !a.ok:
			return 0, &link.RefusedError{}
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
func (f *forwards) handleChannels() error {
	if f.handling {
		return nil
	}
	in, err := f.client.Incoming(sshfwd.ForwardedTCP)
	if err != nil {
		return err
	}
	f.handling = true
	f.spawn(func() {
		for newCh := range in {
			f.dispatch(newCh)
		}
	})
	return nil
}

// dispatch serves a channel in a goroutine of its own, or refuses it. It must not block,
// since the whole connection would.
func (f *forwards) dispatch(newCh ssh.NewChannel) {
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
func (f *forwards) serveRemote(newCh ssh.NewChannel) {
	var payload sshfwd.TCPChannel
	if err := ssh.Unmarshal(newCh.ExtraData(), &payload); err != nil {
		_ = newCh.Reject(ssh.Prohibited, "malformed request")
		return
	}
	f.granting.RLock()
	spec, ok := f.ports[config.Endpoint{Host: payload.Host, Port: int(payload.Port)}]
	f.granting.RUnlock()
	if !ok || payload.Port == 0 {
		_ = newCh.Reject(ssh.Prohibited, "no such forward")
		return
	}
	if spec.IsSocks() {
		if conn, err := f.client.Accept(newCh); err == nil {
			f.serveSocks(conn)
		}
		return
	}
	sock, err := f.dial(spec.Connect)
	if err != nil {
		_ = newCh.Reject(ssh.ConnectionFailed, "connect failed")
		f.failed(err)
		return
	}
	conn, err := f.client.Accept(newCh)
	if err != nil {
		_ = sock.Close()
		return
	}
	conn.Splice(f.ctx, sock)
}

// dial connects to the target of a RemoteForward, on this side.
func (f *forwards) dial(target config.Endpoint) (net.Conn, error) {
	network, address := "tcp", net.JoinHostPort(target.Host, strconv.Itoa(target.Port))
	if target.Path != "" {
		network, address = "unix", target.Path
	}
	dialer := net.Dialer{KeepAlive: -1} // none, as in ssh
	sock, err := dialer.DialContext(f.ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %q for the host: %w", target, usertext.RootCause(err))
	}
	return sock, nil
}
