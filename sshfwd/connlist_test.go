package sshfwd

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// What the server names is escaped, and bounded.
func TestConnList(t *testing.T) {
	var list connList
	leave := list.add(directTCP, ssh.Marshal(TCPChannel{"web", 80, "127.0.0.1", 4711}))
	list.add(forwardedChannel, ssh.Marshal(struct{ Path, Reserved string }{"/run/S.\x1b[31m", ""}))
	list.add(agentChannel, nil)
	list.add(directTCP, []byte("garbage"))
	require.Equal(t, "The following connections are open:\r\n"+
		"  #0 client-session ([session])\r\n"+
		"  #1 web port 80, connect from 127.0.0.1 port 4711 ([direct-tcpip])\r\n"+
		"  #2 /run/S.\\x1b[31m ([forwarded-streamlocal@openssh.com])\r\n"+
		"  #3 auth-agent@openssh.com ([auth-agent@openssh.com])\r\n"+
		"  #4 direct-tcpip ([direct-tcpip])\r\n", list.text())
	leave()
	require.NotContains(t, list.text(), "#1")
}
