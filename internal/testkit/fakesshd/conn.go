package fakesshd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

var errUnknownKey = errors.New("fakesshd: key not authorized")

// A Conn is one authenticated connection.
type Conn struct {
	*ssh.ServerConn
	srv *Server
	ctx context.Context // ends with the connection
	wg  sync.WaitGroup  // the handlers of this connection; serveConn waits

	mu        sync.Mutex
	listeners map[string]net.Listener // by path
}

// Context ends when the connection has ended, or the Server is closed.
func (c *Conn) Context() context.Context { return c.ctx }

// Server is the server that this connection belongs to.
func (c *Conn) Server() *Server { return c.srv }

func (s *Server) config() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		ServerVersion:     s.Version,
		PublicKeyCallback: s.checkKey,
	}
	if s.Banner != "" {
		config.BannerCallback = func(ssh.ConnMetadata) string { return s.Banner }
	}
	if ask := s.Faults.Questions; ask != nil {
		config.KeyboardInteractiveCallback = func(conn ssh.ConnMetadata, challenge ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			return nil, ask(conn, challenge)
		}
	}
	config.AddHostKey(s.HostKey)
	return config
}

func (s *Server) checkKey(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if offered := s.Faults.KeyOffered; offered != nil {
		if err := offered(conn); err != nil {
			return nil, err
		}
	}
	for _, known := range s.AuthorizedKeys {
		if bytes.Equal(known.Marshal(), key.Marshal()) {
			return &ssh.Permissions{}, nil
		}
	}
	return nil, errUnknownKey
}

// serveConn returns when the connection and its handlers have ended, those of
// its listeners among them.
func (s *Server) serveConn(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(handshakeTimeout))
	if _, err := raw.Write(s.Faults.Preface); err != nil {
		return
	}
	serverConn, chans, reqs, err := ssh.NewServerConn(raw, s.config())
	if err != nil {
		s.Log.Debug("fakesshd: handshake failed", "error", err)
		return
	}
	_ = raw.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(s.ctx)
	conn := &Conn{ServerConn: serverConn, srv: s, ctx: ctx, listeners: make(map[string]net.Listener)}
	conn.wg.Go(func() { conn.requestLoop(reqs) })
	if hook := s.Faults.LoggedIn; hook != nil {
		conn.wg.Go(func() { hook(conn) })
	}
	conn.channelLoop(chans)
	cancel()
	_ = serverConn.Wait()
	conn.wg.Wait()
}

// requestLoop answers the global requests in their order, one after another,
// as RFC 4254 section 4 asks: a reply carries nothing that names its request.
func (c *Conn) requestLoop(reqs <-chan *ssh.Request) {
	for req := range reqs {
		ok, payload := false, []byte(nil)
		if handler := c.srv.RequestHandlers[req.Type]; handler != nil {
			ok, payload = handler(c, req)
		}
		if !c.srv.Faults.wait(c.ctx, c.srv.Faults.HoldReplies) {
			continue
		}
		if req.WantReply {
			_ = req.Reply(ok, payload)
		}
	}
}

func (c *Conn) channelLoop(chans <-chan ssh.NewChannel) {
	for ch := range chans {
		switch handler := c.srv.ChannelHandlers[ch.ChannelType()]; {
		case c.srv.Faults.NeverConfirm[ch.ChannelType()]:
		case handler == nil:
			_ = ch.Reject(ssh.UnknownChannelType, "unknown channel type")
		default:
			c.wg.Go(func() { handler(c, ch) })
		}
	}
}
