package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

const (
	// socksTime bounds the negotiation of a SOCKS client.
	socksTime = 30 * time.Second

	// acceptPause is the pause after an Accept that failed, for instance for want of
	// descriptors (channel_post_port_listener in channels.c).
	acceptPause = time.Second
)

// listen opens the listeners of a LocalForward or DynamicForward.
func (f *forwards) listen(ctx context.Context, spec config.ForwardSpec) error {
	all, err := listeners(ctx, f.specs, spec.Listen)
	if err != nil {
		return err
	}
	for _, l := range all {
		if !f.spawn(func() { f.accept(l, spec) }) {
			_ = l.Close()
		}
	}
	return nil
}

// listeners listens at an endpoint, which may have several addresses, as localhost has. As
// in ssh, one that can be listened at is enough (channel_setup_fwd_listener_tcpip in
// channels.c).
func listeners(ctx context.Context, s config.Forwards, at config.Endpoint) (all []net.Listener, err error) {
	if at.Path != "" {
		l, err := listenUnix(ctx, at.Path, s.StreamLocalBindMask, s.StreamLocalBindUnlink)
		return []net.Listener{l}, err
	}
	hosts, err := bindAddresses(ctx, s, at.Host)
	if err != nil {
		return nil, err
	}
	var first error
	for _, host := range hosts {
		config := net.ListenConfig{KeepAlive: -1} // none, as in ssh
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(at.Port)))
		if err == nil {
			all = append(all, l)
		} else if first == nil {
			first = fmt.Errorf("bind [%s]:%d: %w", host, at.Port, usertext.RootCause(err))
		}
	}
	if len(all) == 0 {
		return nil, first
	}
	return all, nil
}

// bindAddresses are the addresses to listen at for a host (channel_fwd_bind_addr in
// channels.c); "" stands for every interface.
func bindAddresses(ctx context.Context, s config.Forwards, host string) ([]string, error) {
	switch {
	case host == "*" || (host == "" && s.GatewayPorts):
		return []string{""}, nil
	case host == "" || host == "localhost":
		return []string{"127.0.0.1", "::1"}, nil
	case net.ParseIP(host) != nil:
		return []string{host}, nil
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %q", host)
	}
	return addresses, nil
}

// accept serves a listener's connections until the SSH connection ends. While there are too
// many of them, further ones wait in the listener's backlog.
func (f *forwards) accept(l net.Listener, spec config.ForwardSpec) {
	stop := context.AfterFunc(f.ctx, func() { _ = l.Close() })
	defer stop()
	for {
		select {
		case f.slots <- struct{}{}:
		case <-f.ctx.Done():
			return
		}
		sock, err := l.Accept()
		if err == nil {
			f.wg.Go(func() {
				defer func() { <-f.slots }()
				f.serveLocal(sock, spec)
			})
			continue
		}
		<-f.slots
		if errors.Is(err, net.ErrClosed) {
			return
		}
		f.failed(fmt.Errorf("accept a connection at %q: %w", spec.Listen, usertext.RootCause(err)))
		select {
		case <-time.After(acceptPause):
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *forwards) serveLocal(sock net.Conn, spec config.ForwardSpec) {
	defer sock.Close()
	stop := context.AfterFunc(f.ctx, func() { _ = sock.Close() })
	defer stop()
	target, answer := spec.Connect, func(bool) error { return nil }
	if spec.IsSocks() {
		var err error
		_ = sock.SetDeadline(time.Now().Add(socksTime))
		if target, answer, err = readSocks(sock); err != nil {
			f.events.Log.Debug("refused a SOCKS client", "error", err)
			return
		}
		_ = sock.SetDeadline(time.Time{})
	}
	conn, err := f.connect(target, sock.RemoteAddr())
	if err != nil {
		_ = answer(false)
		f.failed(err)
		return
	}
	if answer(true) != nil {
		conn.End()
		return
	}
	conn.Splice(f.ctx, sock)
}
