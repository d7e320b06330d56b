package sshfwd

import "gpg-bridge/sshfwd/config"

// setInteractive marks what the connection sends, as IPQoS says: while a terminal is used on the
// host or there is no session, as that of one who types, and else as bulk data
// (ssh_packet_set_interactive in OpenSSH's packet.c up to 10.0, and its callers). A jump host's
// connection has no session, as with ssh -W.
func (c *Client) setInteractive(interactive bool) {
	tos := c.qos.Bulk
	if interactive {
		tos = c.qos.Interactive
	}
	if tos == config.NoQoS {
		return
	}
	if err := c.wire.SetTOS(tos); err != nil {
		c.log.Info("cannot set IPQoS", "err", err)
	}
}
