package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// aRepository makes one here, and an empty one in $THERE.
const aRepository = `set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo && cd repo
git config user.name Alice && git config user.email alice@example.org
echo one >file && git add file
GIT_AUTHOR_DATE='2026-01-01 00:00Z' GIT_COMMITTER_DATE='2026-01-01 00:00Z' git commit -q -m one
git remote add origin ssh://host"$THERE"/repo.git
$SSH -F "$CONF" host "git init -q --bare -b main '$THERE/repo.git'"
`

// git finds out by -G that ours is ssh, and then gives it -p, -4 and SendEnv=GIT_PROTOCOL.
func TestGitCalls(t *testing.T) {
	env.Tool(t, "git")
	c := callersOf(t)
	c.works(t, aRepository+`
export GIT_SSH_COMMAND="$SSH -F $CONF"
git push -q origin main
git clone -q ssh://host"$THERE"/repo.git ../clone && cat ../clone/file
GIT_TRACE_PACKET=1 git fetch origin 2>&1 | grep -c '< version 2'
git push origin main 2>&1`)

	c.works(t, aRepository+`
git config core.sshCommand "$SSH -F $NOPORT"
git push -q "ssh://host:$PORT$THERE/repo.git" main
git fetch -q -4 "ssh://host:$PORT$THERE/repo.git" main && git log --format=%H FETCH_HEAD
git clone -q -4 -c core.sshCommand="$SSH -F $NOPORT" "ssh://host:$PORT$THERE/repo.git" ../clone`)

	r := c.same(t, aRepository+`GIT_SSH_COMMAND="$SSH -F $CONF" git ls-remote "host:$THERE/nothing"`)
	require.NotZero(t, r.code)

	c.signs(t, aRepository+`
$SSH -F "$CONF" host "printf '#!/bin/sh\nexec ~/sign signature\n' >'$THERE/repo.git/hooks/post-receive' && chmod +x '$THERE/repo.git/hooks/post-receive'"
GIT_SSH_COMMAND="$SSH -F $CONF" git push -q origin main`)
}
