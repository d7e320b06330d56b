package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which files a value of ssh -G names, with what the user wrote for it and without.
func TestFilesOfAValue(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	home, err := homeDir()
	require.NoError(t, err)
	for _, name := range []string{"a", "b c", "d", "d e"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	require.NoError(t, os.Mkdir("x y", 0o700))
	for _, c := range []struct {
		value   string
		written string
		want    []string
		inDoubt bool
	}{
		{value: "", want: nil},
		{value: "/a /b", want: []string{"/a", "/b"}},
		{value: "~/a /b", want: []string{home + "/a", "/b"}},
		{value: dir + "/x y/known " + dir + "/x y/2", want: []string{dir + "/x y/known " + dir + "/x y/2"}, inDoubt: true},
		{value: dir + "/x y/known " + dir + "/x y/2", written: `"` + dir + `/x y/known" '` + dir + `/x y/2'`, want: []string{dir + "/x y/known", dir + "/x y/2"}},
		{value: "a b c", want: []string{"a", "b c"}, inDoubt: true},
		{value: "a b c", written: `a "b c"`, want: []string{"a", "b c"}},
		{value: "a b c", written: `a\ b\ c # mine`, want: []string{"a b c"}},
		{value: "d e", want: []string{"d e", "d"}, inDoubt: true},
		{value: "d e", written: "d e", want: []string{"d", "e"}},
		{value: "d e", written: "x y", want: []string{"d e", "d"}, inDoubt: true},
		{value: home + "/a known", written: "~/a known", want: []string{home + "/a", "known"}},
		{value: "/x /h 1", written: `/x "/%h 1"`, want: []string{"/x", "/h 1"}},
		{value: " a", written: `" a"`, want: []string{" a"}},
		{value: "nothing here", want: []string{"nothing here"}, inDoubt: true},
		{value: "none", want: nil},
	} {
		o := To("h", "-F", "none")
		if c.written != "" {
			o = To("h", "-F", "none", "-o", "UserKnownHostsFile = "+c.written)
		}
		config := &Config{Hostname: "h"}
		config.setFiles(o, Settings{"userknownhostsfile": {c.value}})
		require.Equal(t, c.want, config.UserKnownHostsFiles, "%q, written %q", c.value, c.written)
		require.Equal(t, c.inDoubt, config.KnownHostsInDoubt, "%q, written %q", c.value, c.written)
	}
}

// Two lines that ssh -G prints alike decide nothing, nor does a line if another may have
// been missed.
func TestFilesThatCannotBeToldApart(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for text, inDoubt := range map[string]bool{
		"UserKnownHostsFile a b":                                        false,
		"Host x\n userknownhostsfile=a \"b\"\nHost y\n":                 false,
		"UserKnownHostsFile a b\nUserKnownHostsFile \"a b\"":            true,
		"\"UserKnownHostsFile\" a b\nUserKnownHostsFile \"a b\"":        true,
		"UserKnownHostsFile a b # don't\nUserKnownHostsFile \"a b\"":    true,
		"UserKnownHostsFile a b\x00c\nUserKnownHostsFile \"a b\"":       true,
		"User\"KnownHostsFile\" a b":                                    false,
		"UserKnownHostsFile a b\nInclude [x]":                           true,
		"UserKnownHostsFile a b\nInclude ${HOME}/x":                     true,
		"UserKnownHostsFile a b\nInclude /nonexistent x":                false,
		"UserKnownHostsFile a b\nInclude " + dir:                        true,
		"UserKnownHostsFile a b\nInclude " + filepath.Join(dir, "*onf"): true, // itself, for ever
		"UserKnownHostsFile a 'b":                                       true,
	} {
		file := filepath.Join(dir, "conf")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		config := &Config{Hostname: "h"}
		config.setFiles(To("h", "-F", file), Settings{"userknownhostsfile": {"a b"}})
		require.Equal(t, inDoubt, config.KnownHostsInDoubt, text)
	}
}

// In doubt, every list of revoked keys that may be meant is consulted, even a missing one,
// which refuses every key.
func TestRevokedFilesInDoubt(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a", "b c", "d", "e", "d e"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	for value, want := range map[string][]string{
		"a b c": {"a", "b c", "a b"}, "b c": {"b c", "b"}, "a x": {"a", "a x"}, "x y": {"x"}, "a": {"a"}, "none": nil,
		"d e": {"d e", "d", "e"}, "d  e": {"d", "e", "d "},
	} {
		config := &Config{Hostname: "h"}
		config.setFiles(To("h", "-F", "none"), Settings{"revokedhostkeys": {value}})
		require.Equal(t, want, config.RevokedHostKeys, value)
		require.False(t, config.KnownHostsInDoubt)
	}
}
