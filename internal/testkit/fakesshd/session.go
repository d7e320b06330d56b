package fakesshd

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// A session is one session channel (RFC 4254 section 6), with at most one process.
type session struct {
	conn *Conn
	ch   ssh.Channel
	env  []string // what the client added
	pty  *pty     // nil without pty-req
	term string
	proc *process // nil until it was started
}

type ptyPayload struct {
	Term                         string
	Cols, Rows, XPixels, YPixels uint32
	Modes                        string
}

type windowPayload struct {
	Cols, Rows, XPixels, YPixels uint32
}

type envPayload struct {
	Name, Value string
}

type stringPayload struct {
	Value string
}

func handleSession(conn *Conn, newCh ssh.NewChannel) {
	if conn.srv.Faults.DenySession {
		_ = newCh.Reject(ssh.Prohibited, "open failed")
		return
	}
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return
	}
	s := &session{conn: conn, ch: ch}
	for req := range reqs {
		ok := s.handle(req)
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
		if ok && s.proc != nil {
			s.proc.copyOutput()
		}
	}
	s.end()
}

// handle answers one request, as session_input_channel_req does: requests that set up a process
// are refused once there is one, and the others before.
func (s *session) handle(req *ssh.Request) bool {
	if s.proc == nil {
		return s.handleSetup(req)
	}
	switch req.Type {
	case "window-change":
		return s.resize(req.Payload)
	case "signal":
		return s.signal(req.Payload)
	}
	return false
}

func (s *session) handleSetup(req *ssh.Request) bool {
	switch req.Type {
	case "env":
		var payload envPayload
		if ssh.Unmarshal(req.Payload, &payload) != nil {
			return false
		}
		s.env = append(s.env, payload.Name+"="+payload.Value)
		return true
	case "pty-req":
		return s.allocate(req.Payload)
	case "shell":
		return s.start("")
	case "exec", "subsystem":
		return s.startNamed(req)
	}
	return false
}

func (s *session) startNamed(req *ssh.Request) bool {
	var payload stringPayload
	if ssh.Unmarshal(req.Payload, &payload) != nil {
		return false
	}
	command := payload.Value
	if req.Type == "subsystem" {
		command = s.conn.srv.Subsystems[command]
	}
	return command != "" && s.start(command)
}

func (s *session) allocate(data []byte) bool {
	var payload ptyPayload
	if ssh.Unmarshal(data, &payload) != nil || s.pty != nil {
		return false
	}
	pty, err := openPTY()
	if err != nil {
		s.conn.srv.Log.Debug("fakesshd: no pty", "error", err)
		return false
	}
	s.pty, s.term = pty, payload.Term
	_ = pty.resize(windowPayload{payload.Cols, payload.Rows, payload.XPixels, payload.YPixels})
	return true
}

func (s *session) resize(data []byte) bool {
	var size windowPayload
	return ssh.Unmarshal(data, &size) == nil && s.pty != nil && s.pty.resize(size) == nil
}

func (s *session) signal(data []byte) bool {
	var payload stringPayload
	return ssh.Unmarshal(data, &payload) == nil && s.proc.signal(payload.Value)
}

// start runs the shell, or the command with it.
func (s *session) start(command string) bool {
	srv := s.conn.srv
	if srv.Faults.DenyStart {
		return false
	}
	cmd := exec.Command(srv.Shell)
	if command != "" {
		cmd.Args = append(cmd.Args, "-c", command)
	}
	cmd.Dir = srv.Dir
	cmd.Env = append(append([]string{}, srv.Env...), s.env...)
	if s.pty != nil {
		cmd.Env = append(cmd.Env, "TERM="+s.term)
	}
	proc, err := startProcess(s, cmd)
	if err != nil {
		srv.Log.Debug("fakesshd: not started", "command", command, "error", err)
		return false
	}
	s.proc = proc
	s.conn.wg.Go(s.finish)
	return true
}

// finish waits for the process, says how it ended and closes the channel.
func (s *session) finish() {
	err := s.proc.wait()
	_ = s.ch.CloseWrite()
	if !s.conn.srv.Faults.NoExitStatus {
		s.sendExit(err)
	}
	_ = s.ch.Close()
}

func (s *session) sendExit(err error) {
	var exitErr *exec.ExitError
	if errors.As(err, &exitErr) {
		if name, dumped, ok := exitSignal(exitErr); ok {
			_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal    string
				Dumped    bool
				Error     string
				Languages string
			}{name, dumped, "", ""}))
			return
		}
	}
	status := uint32(s.proc.cmd.ProcessState.ExitCode())
	_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// end is called when either side has closed the channel. It hangs up a process that is left,
// with or without a pty (sshd does so only with one).
func (s *session) end() {
	if s.proc != nil {
		s.proc.hangUp()
	} else if s.pty != nil {
		s.pty.close()
	}
}

// signalNames are those of RFC 4254 section 6.10.
var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "ABRT", syscall.SIGALRM: "ALRM", syscall.SIGFPE: "FPE", syscall.SIGHUP: "HUP",
	syscall.SIGILL: "ILL", syscall.SIGINT: "INT", syscall.SIGKILL: "KILL", syscall.SIGPIPE: "PIPE",
	syscall.SIGQUIT: "QUIT", syscall.SIGSEGV: "SEGV", syscall.SIGTERM: "TERM",
}

func signalNumber(name string) (syscall.Signal, bool) {
	for number, known := range signalNames {
		if known == strings.TrimSpace(name) {
			return number, true
		}
	}
	return 0, false
}
