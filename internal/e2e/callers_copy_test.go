package e2e

import (
	"os"
	"testing"

	"gpg-bridge/internal/testkit/env"
)

// some makes files here to be copied.
const some = `set -e
mkdir -p dir/sub && echo one >dir/one && echo two >'dir/sub/a file' && head -c 300000 /dev/zero >dir/zeros
`

func TestCopyCalls(t *testing.T) {
	c := callersOf(t)
	for _, script := range []string{
		`scp -q -S "$SSH" -F "$CONF" dir/one "host:$THERE/one" && scp -q -S "$SSH" -F "$CONF" "host:$THERE/one" back`,
		`scp -q -S "$SSH" -F "$CONF" -r -p dir "host:$THERE"; scp -r -S "$SSH" -F "$CONF" "host:$THERE/dir" back`,
		`scp -q -O -S "$SSH" -F "$CONF" -r dir "host:$THERE" && scp -O -q -S "$SSH" -F "$CONF" "host:$THERE/dir/o*" .`,
		`scp -q -3 -S "$SSH" -F "$NOPORT" -P "$PORT" -4 -C -l 100000 dir/one "host:$THERE/one"
		scp -q -3 -S "$SSH" -F "$CONF" "host:$THERE/one" "host:$THERE/two" && scp -q -3 -O -S "$SSH" -F "$CONF" "host:$THERE/one" "host:$THERE/three"`,
		`printf '%s\n' "cd $THERE" 'mkdir d' 'put -r dir d' 'ls d' 'get d/dir/one back' | sftp -q -b - -S "$SSH" -F "$NOPORT" -P "$PORT" host`,
		`rsync -a -e "$SSH -F $CONF" dir/ "host:$THERE/" && rsync -rz -e "$SSH -F $NOPORT -p $PORT -o Compression=no" "host:$THERE/" back`,
	} {
		c.works(t, some+script)
	}
	for _, script := range []string{
		`scp -q -S "$SSH" -F "$CONF" "host:$THERE/nothing" .`,
		`scp -q -O -S "$SSH" -F "$CONF" "host:$THERE/nothing" .`,
		`echo 'get nothing' | sftp -q -b - -S "$SSH" -F "$CONF" host`,
		`sftp -q -b /dev/null -S "$SSH" -F "$CONF" -P 9 host 2>/dev/null`,
	} {
		c.same(t, script)
	}
	c.signs(t, some+`rsync -r -e "$SSH -F $CONF" --rsync-path='./sign signature && rsync' dir "host:$THERE"`)
}

// sshfs reads and writes through ssh -s sftp.
func TestSSHFSCalls(t *testing.T) {
	env.Tool(t, "sshfs")
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no FUSE on this machine: ", err)
	}
	c := callersOf(t)
	c.works(t, `mkdir m && trap 'fusermount3 -u -z m; rmdir m' EXIT
sshfs "host:$THERE" m -F "$CONF" -o ssh_command="$SSH" || exit
echo one >m/file && mkdir m/dir && mv m/file m/dir/ && cat m/dir/file && stat -c %s m/dir/file`)
}
