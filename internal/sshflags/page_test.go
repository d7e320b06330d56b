package sshflags_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshflags"
)

var update = flag.Bool("update", false, "write docs/ssh-flags.md anew")

const pageHead = `# The flags of gpg-bridge ssh

Generated from internal/sshflags/table.go (` + "`go test ./internal/sshflags -update`" + `): change the
table, not this page. It has every flag of OpenSSH's ssh since 9.2, and a test compares it with
the usage of the ssh that is there.

They are read as ssh reads them: letters may share a word (` + "`-NTp22`" + `), flags may follow the
host, ` + "`--`" + ` ends them, and the command begins where they end. ` + "`ssh -G`" + ` of your own ssh gets them
in your order, so that it decides which of several values counts. What ssh refuses is refused in
its words, and with its status, 255.

* **ours**: gpg-bridge's own client does it.
* **over ssh**: your own ssh does it, and the bridge uses its connection. So it is with what
  asks for the same in ` + "`ssh_config`" + `, and with no other: ` + "`-S none`" + ` or ` + "`-X`" + ` without a display ask
  for nothing. Windows' ssh does not share a connection: there it is refused, but for ` + "`-C`" + `,
  which is left out.
* **handed on**: your own ssh gets the whole command line, and there is no bridge, since it opens
  no session. ` + "`-v`" + ` says so.

| flag | | what it does |
|---|---|---|
`

const pageTail = `
The flags that are gpg-bridge's own have two hyphens (` + "`gpg-bridge ssh --help`" + `). They may stand
among ssh's, which never sees them. These are other names of ssh's:

`

// page is docs/ssh-flags.md.
func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	var long []string
	for _, f := range sshflags.Table() {
		name := strings.TrimSpace(fmt.Sprintf("-%c %s", f.Letter, f.Value))
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, f.Fate, f.Does)
		if f.Long != "" {
			long = append(long, fmt.Sprintf("`--%s` (`-%c`)", f.Long, f.Letter))
		}
	}
	return b.String() + pageTail + strings.Join(long, ",\n") + ".\n"
}

func TestPageIsTheTable(t *testing.T) {
	const path = "../../docs/ssh-flags.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page()), 0o644))
	}
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, page(), string(written), "run the test with -update")
}

// Each flag is there once, with a sentence.
func TestTableIsWhole(t *testing.T) {
	seen := map[byte]bool{}
	for _, f := range sshflags.Table() {
		require.False(t, seen[f.Letter], "-%c", f.Letter)
		seen[f.Letter] = true
		require.True(t, strings.HasSuffix(f.Does, "."), "-%c", f.Letter)
	}
}
