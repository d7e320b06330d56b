package agentside

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

// FuzzKeyListing: of whatever gpg prints, only well-formed fingerprints,
// keygrips and trusts are taken, each out of a record of its kind, and a
// subkey's fingerprint never.
func readKeys(listing string, step int) []Key {
	var l keyList
	for piece := range slices.Chunk([]byte(listing), max(1, step)) {
		_, _ = l.Write(piece)
	}
	return l.end()
}

func FuzzKeyListing(f *testing.F) {
	const fpr = "0123456789ABCDEF0123456789ABCDEF01234567"
	f.Add("sec:u:255:22:89ABCDEF01234567:1::::::scESC:\nfpr:::::::::" + fpr + ":\ngrp:::::::::" + fpr + ":\nuid:u::::1::X::a \\x3a b <a@b>:\nssb:u\nfpr:::::::::" + fpr + ":\n" + fpr + ":6:\n")
	f.Fuzz(func(t *testing.T, listing string) {
		keys := readKeys(listing, len(listing))
		require.Equal(t, keys, readKeys(listing, 3), "the pieces make a difference")
		for _, found := range keys {
			require.Regexp(t, `^([0-9A-F]{40}|[0-9A-F]{64})$`, found.Fingerprint)
			require.Regexp(t, `(?m)^fpr:([^:\n]*:){8}`+found.Fingerprint+`(:|\r*$)`, listing)
			for _, signature := range found.SelfSignatures {
				require.Regexp(t, `^[0-9A-F]{0,8}-[0-9a-f]{2}-[0-9]{1,10}$`, signature)
			}
		}
		require.LessOrEqual(t, len(keys), strings.Count(listing, "pub")+strings.Count(listing, "sec"))
		for _, found := range parseKeygrips(listing) {
			require.Regexp(t, `^[0-9A-F]{40}$`, found)
			require.Contains(t, listing, found)
		}
		for key, value := range parseOwnerTrust(listing) {
			require.Regexp(t, `^([0-9A-F]{40}|[0-9A-F]{64})$`, key)
			require.Contains(t, listing, key)
			require.True(t, 2 <= value && value <= 6)
		}
	})
}

// handshakeEndpoint leads to a wire at which the file's kind of socket listens.
type handshakeEndpoint struct{ conn *agentConn }

func (e handshakeEndpoint) Dial(context.Context) (net.Conn, error) { return e.conn, nil }

func (e handshakeEndpoint) Authenticate(conn net.Conn) error {
	return (&Endpoint{}).Authenticate(conn)
}

const fuzzNonce = "0123456789\n\r\x00\xff|%"

// FuzzHandshake: whatever listens at the port of a socket file gets the nonce;
// it gets our credentials only if it knows the nonce as well, where the kind
// asks for them, and nothing else but the commands of the proof; and within ten
// seconds there is a session that has been proved, or an error and no
// connection. The pieces of what it says have a / between them.
func FuzzHandshake(f *testing.F) {
	f.Add(true, []byte(fuzzNonce+"/0123456789ab/OK\n/OK\n"))
	f.Add(false, []byte("# hi\nOK\n/ERR 1\n/OK\n/OK\n"))
	f.Fuzz(func(t *testing.T, cygwin bool, said []byte) {
		synctest.Test(t, func(t *testing.T) { handshake(t, cygwin, said) })
	})
}

func handshake(t *testing.T, cygwin bool, said []byte) {
	w := newWire()
	file := assuan.SocketFile{Kind: assuan.SocketNative, Nonce: [assuan.NonceSize]byte([]byte(fuzzNonce))}
	if cygwin {
		file.Kind = assuan.SocketCygwin
	}
	type result struct {
		s   *Session
		err error
	}
	results := make(chan result, 1)
	go func() {
		s, err := connect(t.Context(), handshakeEndpoint{&agentConn{Conn: w, file: file}}, prove)
		results <- result{s, err}
	}()
	for piece := range bytes.SplitSeq(said, []byte("/")) {
		w.say(piece)
		synctest.Wait()
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
	got := <-results
	require.Equal(t, got.err != nil, w.isOver())
	flat := bytes.ReplaceAll(said, []byte("/"), nil)
	requireHandshake(t, cygwin && !bytes.HasPrefix(flat, []byte(fuzzNonce)), cygwin, string(w.heard))
	if got.err == nil {
		require.Regexp(t, `(?:^|\n)OK(?: [^\n]*|\r)?\n`, "\n"+string(flat[creditSize(cygwin):]))
		require.Contains(t, string(w.heard), "GETINFO restricted\n")
		require.NoError(t, got.s.Close())
	}
}

func creditSize(cygwin bool) int {
	if cygwin {
		return assuan.NonceSize + assuan.CygwinCredentialsSize
	}
	return 0
}

func requireHandshake(t *testing.T, stranger, cygwin bool, heard string) {
	rest, ok := strings.CutPrefix(heard, fuzzNonce)
	require.True(t, ok)
	if stranger {
		require.Empty(t, rest, "to somebody who does not know the secret")
	}
	if mine := ownCredentials().Bytes(); cygwin && rest != "" {
		rest, ok = strings.CutPrefix(rest, string(mine[:]))
		require.True(t, ok)
	}
	require.Regexp(t, regexp.MustCompile(`^(GETINFO restricted\n(OPTION pretend-request-origin=remote\n(GETINFO restricted\n)?)?)?$`), rest)
}
