package sshconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// configs are files of the kinds that people have.
func configs(t *testing.T) map[string]string {
	included := filepath.Join(t.TempDir(), "more.conf")
	require.NoError(t, os.WriteFile(included, []byte("User included\nHost dev\n  Port 2022\nHost lab\n  Port 2023\n"), 0o600))
	return map[string]string{
		"empty":                "",
		"a comment":            "# nothing yet\n",
		"no final newline":     "Host dev\n  User me",
		"a comment at the end": "# the end",
		"global at the top":    "ServerAliveInterval 10\nUser everybody\n\nHost dev\n  HostName dev.example.org\n",
		"global only":          "ServerAliveInterval 10\nForwardAgent no\n",
		"a ProxyCommand":       "Host dev lab\n  ProxyCommand nc %h %p\n",
		"a ProxyJump":          "Host *\n  ProxyJump bastion\n",
		"a ProxyJump for all":  "ProxyJump bastion\nHost lab\n  ProxyJump none\n",
		"patterns":             "Host !dev *\n  Port 1\nHost de? 10.*\n  Port 2\nHost *\n  Port 3\n",
		"Match":                "Match host dev,lab user root\n  Port 1\nMatch originalhost web.example.org\n  HostName web\nMatch all\n  User x\n",
		"Match at the top":     "Match exec \"true\"\n  Port 1\nMatch exec \"test %n = lab\"\n  Port 2\n",
		"Match final":          "Match final host dev\n  Port 7\nHost dev\n  HostName dev\nMatch canonical\n  Port 8\n",
		"Include at the top":   "Include " + included + "\nServerAliveInterval 3\nHost dev\n  User me\n",
		"Include in a Host":    "Host dev\n  Include " + included + "\nHost *\n  Port 22\n",
		"CRLF":                 "ServerAliveInterval 10\r\nHost dev\r\n\tUser me\r\n\r\nHost lab\r\n\tPort 1\r\n",
		"CRLF after all":       "User me\nHost dev\r\n  Port 3\r\n",
		"tabs and equals":      "\tPort=7\n\n\tHost = dev\n\t\tUser\t=\tme\nhost \"lab\"\n  user \"me too\"\n",
		"unknown keywords":     "IgnoreUnknown UseKeychain,Odd\nUseKeychain yes\nHost dev\n  Odd x\n",
		"other tools' blocks":  "# begin coder\nHost coder.*\n  ProxyCommand x %h\n# end coder\nHost dev\n  ControlMaster auto\n  ControlPath ~/.ssh/%C\n  ControlPersist 1m\n",
	}
}

// Our lines apply to their host only, and change no other setting. When they are removed the
// file is what it was.
func TestSetChangesOneHostOnly(t *testing.T) {
	for name, before := range configs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := parse(t, before)
			text.Set("dev", ourLine)
			text.Set("third", ourLine)
			after := text.Bytes()
			require.Contains(t, meaning(t, after, "dev"), "proxycommand "+ourLine[len("ProxyCommand "):])
			require.Equal(t, withoutProxy(meaning(t, []byte(before), "dev")), withoutProxy(meaning(t, after, "dev")))
			for _, other := range []string{"lab", "devil", "web.example.org", "10.0.0.1", "coder.a", "root@x"} {
				require.Equal(t, meaning(t, []byte(before), other), meaning(t, after, other), "%s\n%s", other, after)
			}
			require.Equal(t, strings.Contains(before, "\r\n") && strings.HasSuffix(strings.SplitAfter(before, "\n")[0], "\r\n"),
				strings.HasPrefix(string(after), beginMark+"\r\n"))

			again := parse(t, string(after))
			require.Equal(t, []string{"dev", "third"}, again.Hosts())
			again.Set("dev", ourLine)
			require.Equal(t, string(after), string(again.Bytes()), "a second time")
			require.True(t, again.Remove("dev"))
			require.True(t, again.Remove("third"))
			require.False(t, again.Remove("third"))
			require.Equal(t, before, string(again.Bytes()))
		})
	}
}

const ourBlock = beginMark + "\n" + note + "\nHost dev\n    " + ourLine + "\nHost *\n" + endMark + "\n"

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name, before string
		host         string
		lines        []string
		want         string
	}{
		{"new", "User me\n", "dev", []string{ourLine}, ourBlock + "User me\n"},
		{"the same", ourBlock, "dev", []string{ourLine}, ourBlock},
		{"other lines", ourBlock, "dev", []string{"ProxyCommand x", "ProxyUseFdpass yes"},
			strings.Replace(ourBlock, ourLine, "ProxyCommand x\n    ProxyUseFdpass yes", 1)},
		{"fewer lines", strings.Replace(ourBlock, ourLine, ourLine+"\n    ProxyUseFdpass yes", 1), "dev", []string{ourLine}, ourBlock},
		{"another host", ourBlock, "lab", []string{ourLine}, strings.Replace(ourBlock, "Host *", "Host lab\n    "+ourLine+"\nHost *", 1)},
		{"somebody's line", strings.Replace(ourBlock, ourLine, "User me\n    # why\n    "+ourLine, 1), "dev", []string{"ProxyCommand x"},
			strings.Replace(ourBlock, ourLine, "ProxyCommand x\n    User me\n    # why", 1)},
		{"somebody's indentation", strings.Replace(ourBlock, "    Pr", "\tPr", 1), "dev", []string{ourLine}, strings.Replace(ourBlock, "    Pr", "\tPr", 1)},
		{"somebody's section", strings.Replace(ourBlock, "Host *", "Host lab\n  User me\nHost *", 1), "web", []string{ourLine},
			strings.Replace(ourBlock, "Host *", "Host lab\n  User me\nHost web\n    "+ourLine+"\nHost *", 1)},
		{"somebody took the end", strings.Replace(ourBlock, "Host *\n", "", 1), "lab", []string{ourLine},
			strings.Replace(ourBlock, "Host *", "Host lab\n    "+ourLine+"\nHost *", 1)},
		{"somebody went on", strings.Replace(ourBlock, "Host *\n", "Host *\nHost lab\nUser me\n", 1), "web", []string{ourLine},
			strings.Replace(ourBlock, "Host *\n", "Host web\n    "+ourLine+"\nHost *\nHost lab\nUser me\nHost *\n", 1)},
		{"below somebody's lines", "# mine\n" + ourBlock + "User me\n", "dev", []string{"ProxyCommand x"},
			"# mine\n" + strings.Replace(ourBlock, ourLine, "ProxyCommand x", 1) + "User me\n"},
		{"behind a byte order mark", byteBOM + "User me\n", "dev", []string{ourLine}, byteBOM + ourBlock + "User me\n"},
		{"CRLF", "User me\r\n", "dev", []string{ourLine}, strings.ReplaceAll(ourBlock+"User me\n", "\n", "\r\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := parse(t, c.before)
			text.Set(c.host, c.lines...)
			require.Equal(t, c.want, string(text.Bytes()))
			require.Equal(t, c.lines, parse(t, c.want).Lines(c.host))
		})
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, before, want string }{
		{"all there was", ourBlock, ""},
		{"above somebody's lines", ourBlock + "\nUser me", "\nUser me"},
		{"byte order mark", byteBOM + ourBlock + "User me\n", byteBOM + "User me\n"},
		{"somebody's line stays", strings.Replace(ourBlock, "Host *", "    User me\nHost *", 1), strings.Replace(ourBlock, "    "+ourLine, "    User me", 1)},
		{"somebody's section stays", strings.Replace(ourBlock, "Host *", "Host lab\nHost *", 1), strings.Replace(ourBlock, "Host dev\n    "+ourLine, "Host lab", 1)},
		{"somebody's comment stays", strings.Replace(ourBlock, "Host dev", "# why\nHost dev", 1), strings.Replace(ourBlock, "Host dev\n    "+ourLine, "# why", 1)},
		{"somebody's settings for all stay", strings.Replace(ourBlock, "Host *\n", "Host *\nUser me\n", 1),
			strings.Replace(strings.Replace(ourBlock, "Host dev\n    "+ourLine+"\n", "", 1), "Host *\n", "Host *\nUser me\n", 1)},
		{"empty lines go", strings.Replace(ourBlock, "Host *", "\n\nHost *\n\n", 1), ""},
		{"global lines stay global", "Host lab\n" + ourBlock + "# for all\nUser me\n", "Host lab\nHost *\n# for all\nUser me\n"},
		{"sections need no help", "Host lab\n" + ourBlock + "# x\nMatch all\nUser me\n", "Host lab\n# x\nMatch all\nUser me\n"},
		{"nothing above", "# mine\nPort 7\n" + ourBlock + "User me\n", "# mine\nPort 7\nUser me\n"},
		{"another host's lines", strings.ReplaceAll(ourBlock, "dev", "lab"), strings.ReplaceAll(ourBlock, "dev", "lab")},
		{"no block", "User me\n", "User me\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := parse(t, c.before)
			require.Equal(t, c.before != c.want, text.Remove("dev"))
			require.Equal(t, c.want, string(text.Bytes()))
			require.Equal(t, strings.Contains(c.want, beginMark), text.HasBlock())
			require.False(t, text.IsNothing())
		})
	}
}

// A file that was created for our block need not exist without it.
func TestFreshFileGoesAgain(t *testing.T) {
	text, err := Parse(nil)
	require.NoError(t, err)
	require.True(t, text.IsNothing())
	text.Set("dev", ourLine)
	text.Set("lab", ourLine)
	require.False(t, text.IsNothing())
	whole := string(text.Bytes())
	require.Contains(t, whole, createdNote)

	text = parse(t, whole)
	require.True(t, text.Remove("lab"))
	require.True(t, text.Remove("dev"))
	require.True(t, text.IsNothing())

	text = parse(t, whole+"User me\n")
	require.True(t, text.Remove("lab"))
	require.True(t, text.Remove("dev"))
	require.False(t, text.IsNothing())
	require.Equal(t, "User me\n", string(text.Bytes()))
	require.False(t, parse(t, "").IsNothing(), "an empty file is one")
}

func TestMarksThatDoNotMatch(t *testing.T) {
	for _, text := range []string{
		beginMark + "\n", endMark + "\n", endMark + "\n" + beginMark + "\n", ourBlock + ourBlock,
		beginMark + "\n" + ourBlock, ourBlock + endMark,
	} {
		_, err := Parse([]byte("User me\n" + text))
		var marks *MarksError
		require.ErrorAs(t, err, &marks, text)
		require.NotEmpty(t, marks.Hint())
	}
	parse(t, "# about gpg-bridge: begin\n"+ourBlock)
}

func TestValidHost(t *testing.T) {
	for _, name := range []string{"dev", "Dev_1.example.org", "10.0.0.1", "::1", "a-b"} {
		require.True(t, ValidHost(name), name)
	}
	for _, name := range []string{"", "*", "d?v", "!dev", "a b", "a,b", "-x", "me@dev", "a\nb", "$(x)", "a;b", "%h", "ssh://x", "a\"b", "#x", "ü"} {
		require.False(t, ValidHost(name), name)
	}
}

func TestDiff(t *testing.T) {
	require.Empty(t, Diff("f", []byte("a\n"), []byte("a\n")))
	for _, c := range []struct{ from, to, want string }{
		{"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		{"1\n2\n3\n4\n", "0\n1\n2\n3\n4\n", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n6\n7\n8\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"a", "x\na", "@@ -1,1 +1,2 @@\n+x\n a\n\\ No newline at end of file\n"},
		{"a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a\n"},
	} {
		require.Equal(t, "--- f\n+++ f\n"+c.want, Diff("f", []byte(c.from), []byte(c.to)))
	}
}

// Whatever a file holds, it is the same again when our lines are removed.
func FuzzSetAndRemove(f *testing.F) {
	for _, seed := range []string{"", "User me", "Host a\r\n\tPort 1\r\n", ourBlock, "Host x\n" + ourBlock + "Port 1", byteBOM + "\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := Parse(data)
		if err != nil {
			return
		}
		require.Equal(t, string(data), string(text.Bytes()))
		had := text.HasBlock()
		text.Set("some-host", ourLine)
		again := parse(t, string(text.Bytes()))
		require.Equal(t, []string{ourLine}, again.Lines("some-host"))
		if again.Remove("some-host"); !had {
			require.Equal(t, string(data), string(again.Bytes()))
		}
	})
}
