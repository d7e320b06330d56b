package hostkey

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// Which lines count, and what each means.
func TestKnownHostsLines(t *testing.T) {
	for text, want := range map[string]string{
		"h k":                    "1 0 h k",
		" \t h \tk c ":           "1 0 h k c ",
		"\n\n#x y\n h k":         "4 0 h k",
		"h\tk\n":                 "1 0 h k",
		"h":                      "",
		"h ":                     "",
		"h #":                    "",
		"#h k":                   "",
		"h k\x00x":               "1 0 h k",
		"\x00h k":                "",
		"@cert-authority h k":    "1 1 h k",
		"@revoked  h k":          "1 2 h k",
		"@revoked\th k":          "", // the first blank ends it
		"@revoked\th\tk":         "1 2 h k",
		"@other h k":             "",
		"@revoked @revoked h k":  "",
		"@revoked":               "",
		"@revoked h":             "",
		"h @revoked":             "1 0 h @revoked",
		"h k\r\n":                "1 0 h k\r",
		"h k\nbad\n@revoked i l": "1 0 h k|3 2 i l",
	} {
		var got []string
		for _, l := range parseKnownHosts([]byte(text), "f") {
			require.Equal(t, "f", l.file)
			got = append(got, fmt.Sprint(l.number, " ", int(l.marker), " ", l.names, " ", l.key))
		}
		require.Equal(t, want, strings.Join(got, "|"), "%q", text)
	}
}

// A line must name its key's type. An RSA key may also be named by its signatures, no key
// by a certificate's type.
func TestKnownHostsKeyTypes(t *testing.T) {
	for _, c := range []struct {
		name, keyType string
		want          bool
	}{
		{"ssh-rsa", ssh.KeyAlgoRSA, true},
		{"rsa-sha2-256", ssh.KeyAlgoRSA, true},
		{"rsa-sha2-512", ssh.KeyAlgoRSA, true},
		{"rsa-sha2-512-cert-v01@openssh.com", ssh.KeyAlgoRSA, false},
		{"ssh-ed25519", ssh.KeyAlgoRSA, false},
		{"ssh-rsa", ssh.KeyAlgoED25519, false},
		{"rsa-sha2-256", ssh.KeyAlgoED25519, false},
		{"ssh-ed25519", ssh.KeyAlgoED25519, true},
	} {
		require.Equal(t, c.want, typeNamed(c.name, c.keyType), "%s of %s", c.name, c.keyType)
	}
	for algorithm, want := range map[string]string{
		"rsa-sha2-256": ssh.KeyAlgoRSA, "rsa-sha2-512-cert-v01@openssh.com": ssh.KeyAlgoRSA,
		"ssh-ed25519-cert-v01@openssh.com": ssh.KeyAlgoED25519, "ecdsa-sha2-nistp256": ssh.KeyAlgoECDSA256,
		"sk-ssh-ed25519-cert-v01@openssh.com": ssh.KeyAlgoSKED25519, "sk-ssh-ed25519@openssh.com": ssh.KeyAlgoSKED25519,
	} {
		require.Equal(t, want, plainKeyType(algorithm))
	}
	key := sshkeys.New(t)
	blob := base64.StdEncoding.EncodeToString(key.Marshal())
	for text, want := range map[string]bool{
		"ssh-ed25519 " + blob: true, "ssh-ed25519 \t" + blob + "\tc": true, "ssh-ed25519\t" + blob + " c d": true,
		"ssh-rsa " + blob: false, "ssh-ed25519" + blob: false, "ssh-ed25519 " + blob + "=": false, "ssh-ed25519 ": false,
		" " + blob: false, "ssh-ed25519 " + blob[:40]: false,
	} {
		got, ok := parseKnownKey(text)
		require.Equal(t, want, ok, text)
		if ok {
			require.True(t, Same(key, got))
		}
	}
}

func TestKnownHostsNames(t *testing.T) {
	for in, want := range map[string]string{"AZaz": "azaz", "@[`{": "@[`{", "É\xc9": "É\xc9", "09": "09"} {
		require.Equal(t, want, lowerASCII(in))
	}
	for port, want := range map[int]string{0: "h", 22: "h", 21: "[h]:21", 2222: "[h]:2222"} {
		require.Equal(t, want, hostName("h", port))
	}
	for name, want := range map[string]bool{"h": true, "H": true, "hh": false, "": false} {
		require.Equal(t, want, matchNames(name, "H"), name)
	}
	salt := make([]byte, 20)
	hashed := hashName("h", salt)
	require.True(t, matchNames("h", hashed))
	for _, names := range []string{
		hashName("i", salt), hashName("h", salt[1:]), hashed[:len(hashed)-4], "|2" + hashed[2:], hashed + "x", "|1|", hashed + "|",
		strings.Replace(hashed, "A=|", "A|", 1), strings.TrimPrefix(hashed, "|"),
	} {
		require.False(t, matchNames("h", names), names)
	}
	// ssh has room for 1022 bytes of a pattern.
	for length, want := range map[int]bool{1022: true, 1023: false, 1024: false} {
		require.Equal(t, want, matchPatternList("a", strings.Repeat("*", length-1)+"a"), length)
	}
}

// A pattern has to match all of a name.
func TestKnownHostsPatterns(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		want          bool
	}{
		{"", "", true}, {"a", "", false}, {"", "a", false}, {"ab", "a", false}, {"a", "ab", false}, {"ab", "?", false},
		{"ab", "??", true}, {"ab", "a*", true}, {"a", "a*", true}, {"a", "a**", true}, {"abc", "a*c", true}, {"abcbd", "a*bd", true},
		{"abab", "*ab", true}, {"aba", "*ab", false}, {"abc", "*b", false}, {"a*", "a?", true}, {"abcabd", "*ab?", true},
		{"aab", "a*ab", true}, {"ab", "a*ab", false}, {"xayb", "*a*b", true}, {"xbya", "*a*b", false},
	} {
		require.Equal(t, c.want, config.Match(c.name, c.pattern), "%q of %q", c.pattern, c.name)
	}
}

// A missing file is no problem; one that cannot be read is reported, and the others count.
func TestKnownHostsFilesThatCannotBeRead(t *testing.T) {
	k := newHostKeysOfTest(t)
	c := k.config(t, "* {KEY}\n")
	dir := t.TempDir()
	c.UserKnownHostsFiles = []string{filepath.Join(dir, "none"), dir}
	c.GlobalKnownHostsFiles = k.config(t, "* {KEY}\n").UserKnownHostsFiles
	var logged bytes.Buffer
	policy := New(t.Context(), c, nil, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, policy.Check("", env.TCPAddr(1), k.key))
	require.Equal(t, 1, strings.Count(logged.String(), "known hosts file ignored"))
	require.Len(t, c.UserKnownHostsFiles, 2)
}

// What is added gets a line of its own, once, whether its name is hashed or not.
func TestKnownHostIsAddedOnce(t *testing.T) {
	k := newHostKeysOfTest(t)
	for _, hash := range []bool{false, true} {
		for before, line := range map[string]int{"": 1, "\n": 2, "# c": 2, "# c\n": 2, "H {OTHER}\n": 2, "@revoked i {KEY}": 2} {
			file := k.config(t, before).UserKnownHostsFiles[0]
			for range 2 {
				require.NoError(t, appendKnownHost(t.Context(), file, knownHost{name: "H", key: k.key}, hash))
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			entries := func(text string) int { return strings.Count(text, "#") + strings.Count(text, " ssh-ed25519 ") }
			require.Equal(t, entries(k.fill(before))+1, entries(string(text)), "%q", before)
			require.Equal(t, hash, strings.Contains(string(text), "|1|"))
			v, known := check(keysFor(mustRead(t, file), "h"), k.key)
			require.Equal(t, hostKnown, v)
			require.Equal(t, line, known.number, "%q", before)
		}
	}
}
