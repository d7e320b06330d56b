//go:build unix

package faults

import (
	"net"
	"strings"
)

// A fault is what goes wrong, at one moment or from then on.
type fault struct {
	name   string
	means  string // for docs/faults.md
	inject func(s *testbed) error

	front bool // the agent's socket is a port with a nonce
	ssh   bool // the clients come through SSH channels

	// shared is what happens to the neighbour: it ends, too, because all that
	// it had in common with the client did.
	shared bool
}

var faults = []fault{
	{name: "client closes", means: "the gpg on the host ends, or is interrupted",
		inject: func(s *testbed) error { s.client.close(); return nil }},
	{name: "client half-closes", means: "it has said all, and still listens",
		inject: func(s *testbed) error { return s.client.conn.CloseWrite() }},
	{name: "client resets", means: "its connection breaks",
		inject: func(s *testbed) error {
			err := s.client.conn.(*net.TCPConn).SetLinger(0)
			s.client.close()
			return err
		}},
	{name: "client sends garbage", means: "3,000 bytes that are not a line",
		inject: func(s *testbed) error {
			s.work.Go(func() { _ = s.client.send(strings.Repeat("\x00\xffgarbage", 333)) })
			return nil
		}},
	{name: "SSH channel closes", means: "the host's sshd closes it", ssh: true,
		inject: func(s *testbed) error { s.client.close(); return nil }},
	{name: "SSH connection ends", means: "it is cut, given up or closed; sshfwd then ends what runs on it", ssh: true, shared: true,
		inject: func(s *testbed) error { s.tunnel.cut(); s.cancel(errCut); return nil }},
	{name: "bridge ends", means: "SIGTERM, or the end of gpg-bridge", shared: true,
		inject: func(s *testbed) error { s.cancel(errShutdown); return nil }},
	{name: "agent closes", means: "it ends the connection, or is ended",
		inject: func(s *testbed) error {
			if s.agent != nil {
				s.agent.close()
			}
			_ = s.agents.Close() // or there was none
			return nil
		}},
	{name: "agent resets", means: "it is killed with something unread, or Windows resets it", front: true,
		shared: true,
		inject: func(s *testbed) error {
			if s.front == nil {
				return s.agents.Close()
			}
			s.front.Reset()
			return nil
		}},
	{name: "agent restarts", means: "with another port and another nonce in its socket file", front: true, shared: true,
		inject: func(s *testbed) error {
			if s.front == nil {
				return s.restartUnix()
			}
			return s.front.Restart()
		}},
	{name: "agent says garbage", means: "a line that is not Assuan, asked or not",
		inject: func(s *testbed) error {
			if s.agent != nil {
				s.work.Go(func() { _ = s.agent.send("ok, as you wish\n") })
			}
			return nil
		}},
	{name: "agent says 10 MB", means: "of D lines, before what it has to say next",
		inject: func(s *testbed) error { s.speech = behindAFlood; return nil }},
	{name: "agent dribbles", means: "what it has to say next comes one byte at a time",
		inject: func(s *testbed) error { s.speech = byteByByte; return nil }},
	{name: "agent is silent", means: "it is stopped (SIGSTOP), or waits for a human",
		inject: func(*testbed) error { return nil }},
}
