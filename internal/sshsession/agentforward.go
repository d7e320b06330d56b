package sshsession

// forwardAgent prepares to forward the ssh-agent if ForwardAgent or -A says so, and reports
// whether the session may request it. If there is no agent it says nothing, as ssh.
func (r *run) forwardAgent() bool {
	if !r.config.ForwardAgent {
		return false
	}
	if err := r.conn.Client.ForwardAgent(); err != nil {
		r.service.Log.Info("the ssh-agent is not forwarded", "err", err)
		return false
	}
	return true
}
