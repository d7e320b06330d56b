package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const (
	// socksTime bounds the negotiation of a SOCKS client.
	socksTime = 30 * time.Second

	// acceptPause is how long a listener rests that cannot accept, as when no
	// descriptor is left (channel_post_port_listener in channels.c).
	acceptPause = time.Second
)

// listen opens the listeners of a LocalForward or DynamicForward.
func (f *portForwards) listen(ctx context.Context, spec ForwardSpec) error {
	listeners, err := f.specs.listeners(ctx, spec.Listen)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		if !f.spawn(func() { f.accept(l, spec) }) {
			_ = l.Close()
		}
	}
	return nil
}

// listeners are one or more: localhost has two addresses. As with ssh, one that
// can be had is enough (channel_setup_fwd_listener_tcpip in channels.c).
func (s ForwardSpecs) listeners(ctx context.Context, at Endpoint) (all []net.Listener, err error) {
	if at.Path != "" {
		l, err := listenUnix(ctx, at.Path, s.StreamLocalBindMask, s.StreamLocalBindUnlink)
		return []net.Listener{l}, err
	}
	hosts, err := s.bindAddresses(ctx, at.Host)
	if err != nil {
		return nil, err
	}
	var first error
	for _, host := range hosts {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(at.Port)))
		if err == nil {
			all = append(all, l)
		} else if first == nil {
			first = fmt.Errorf("bind [%s]:%d: %w", host, at.Port, rootCause(err))
		}
	}
	if len(all) == 0 {
		return nil, first
	}
	return all, nil
}

// bindAddresses are where to listen for a host (channel_fwd_bind_addr in
// channels.c); "" stands for every interface.
func (s ForwardSpecs) bindAddresses(ctx context.Context, host string) ([]string, error) {
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

// accept serves connections until the SSH connection ends. At the bound they
// wait in the listener's backlog.
func (f *portForwards) accept(l net.Listener, spec ForwardSpec) {
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
		f.failed(fmt.Errorf("accept a connection at %q: %w", spec.Listen, rootCause(err)))
		select {
		case <-time.After(acceptPause):
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *portForwards) serveLocal(sock net.Conn, spec ForwardSpec) {
	defer sock.Close()
	stop := context.AfterFunc(f.ctx, func() { _ = sock.Close() })
	defer stop()
	target, answer := spec.Connect, func(bool) error { return nil }
	if spec.isSocks() {
		var err error
		_ = sock.SetDeadline(time.Now().Add(socksTime))
		if target, answer, err = readSocks(sock); err != nil {
			f.client.log.Debug("refused a SOCKS client", "error", err)
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
		_ = conn.Close()
		<-conn.done
		return
	}
	splice(f.ctx, sock, conn)
}
