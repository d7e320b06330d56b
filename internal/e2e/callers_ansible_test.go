package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// asAnsible makes `run` call the host over $SSH.
const asAnsible = `export ANSIBLE_HOME="$BIN/ansible" ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
run() {
	ansible all -i host, -e ansible_python_interpreter=/usr/bin/python3 -e ansible_ssh_executable="$SSH" \
		-e "ansible_ssh_common_args='-F $CONF'" "$@"
}
`

// Ansible shares connections (-C -o ControlMaster=auto -o ControlPersist=60s) unless told
// otherwise.
func TestAnsibleCalls(t *testing.T) {
	env.Tool(t, "ansible")
	c := callersOf(t)
	r := c.works(t, asAnsible+`run -m ping`, "ANSIBLE_SSH_ARGS=-o ControlMaster=no")
	require.Contains(t, r.stdout, `"ping": "pong"`)
	c.works(t, asAnsible+`run -m ping; code=$?
	for socket in "$ANSIBLE_HOME"/cp/*; do ssh -F "$CONF" -o ControlPath="$socket" -O exit host 2>/dev/null; done
	exit $code`)
	c.signs(t, asAnsible+`run -m command -a './sign signature'`, "ANSIBLE_SSH_ARGS=-o ControlMaster=no")
}
