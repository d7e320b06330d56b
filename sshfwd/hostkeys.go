package sshfwd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// hostKeysRequest is by what a server says which host keys it has, right after the log-in
// (OpenSSH's PROTOCOL, section 2.5).
const hostKeysRequest = "hostkeys-00@openssh.com"

// proofDelay is how long the proof of new keys waits for something that is more urgent, on a
// connection where nothing comes of it.
const proofDelay = 5 * time.Second

// hostKeyUpdates is UpdateHostKeys for one connection. A server's proof of its new keys is
// asked for after what the user waits for: x/crypto sends one global request at a time.
type hostKeyUpdates struct {
	client    *Client
	policy    *hostkey.Policy
	mode      config.KeyUpdates
	algorithm string // of the key exchange
	log       *slog.Logger

	// unasked has what the user is to be asked about, with UpdateHostKeys ask.
	unasked chan *hostkey.Update
}

// serveRequests answers the server's global requests until the connection ends. As ssh does,
// it refuses all but one, whose answer it does not need (client_input_global_request in
// clientloop.c). The first announcement of host keys counts; ssh ends the connection at a
// second one.
func (c *Client) serveRequests(requests <-chan *ssh.Request, updates *hostKeyUpdates) {
	ctx, cancel := context.WithCancel(context.Background())
	c.hostKeys = updates
	c.wg.Go(func() {
		defer cancel()
		announced := false
		for req := range requests {
			isKeys := req.Type == hostKeysRequest
			if isKeys && !announced {
				announced = c.Go(func() { updates.run(ctx, req.Payload) })
			}
			_ = req.Reply(isKeys, nil)
		}
	})
}

// run does the update, and says at -v how it went: a known_hosts file that cannot be
// written is no news to whoever keeps it so.
func (u *hostKeyUpdates) run(ctx context.Context, announcement []byte) {
	if u.mode == config.UpdateNo {
		return
	}
	update, err := u.policy.Announced(ctx, announcement)
	if err == nil {
		err = u.prove(ctx, update)
	}
	if err == nil && u.mode == config.UpdateAsk {
		u.unasked <- update
		return
	}
	if err == nil {
		err = update.Write(ctx)
	}
	if err != nil {
		u.log.Info("host keys in known_hosts stay as they are", "reason", usertext.Quoted(err.Error()))
		return
	}
	u.log.Info("host keys updated in known_hosts", "learned", update.Learned(), "obsolete", update.Obsolete())
}

// prove has the server prove its new keys, if there are any.
func (u *hostKeyUpdates) prove(ctx context.Context, update *hostkey.Update) error {
	if len(update.New()) == 0 {
		return nil
	}
	delay := time.NewTimer(proofDelay)
	defer delay.Stop()
	select {
	case <-u.client.inUse:
	case <-delay.C:
	case <-ctx.Done():
		return net.ErrClosed
	}
	name, payload := update.ProveRequest()
	ok, answer, err := u.client.conn.SendRequest(name, true, payload)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("the server does not prove that it has the private halves of its keys")
	}
	return update.Prove(u.client.conn.SessionID(), u.algorithm, answer)
}

// AskHostKeys asks the user about the update of UpdateHostKeys ask, if the server has proved
// its keys by now, and writes it if they agree. It is for when the terminal is the user's
// again: ssh asks within the session (update_known_hosts in clientloop.c).
func (c *Client) AskHostKeys(ctx context.Context, asker usertext.Asker) error {
	if c.hostKeys == nil {
		return nil
	}
	select {
	case update := <-c.hostKeys.unasked:
		if update != nil && update.Confirm(ctx, asker) {
			return update.Write(ctx)
		}
	default:
	}
	return nil
}
