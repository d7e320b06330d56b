package ports

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/config"
)

// A socksClient sends what it was given, and keeps the answers.
type socksClient struct {
	io.Reader
	answers bytes.Buffer
}

func (c *socksClient) Write(p []byte) (int, error) { return c.answers.Write(p) }

func TestReadSocks(t *testing.T) {
	for _, test := range []struct {
		name, request string
		target        config.Endpoint
		granted       string // all answers
	}{
		{"4", "\x04\x01\x00\x50\x01\x02\x03\x04user\x00", config.Endpoint{Host: "1.2.3.4", Port: 80}, "\x00\x5a\x00\x00\x00\x00\x00\x00"},
		{"4A", "\x04\x01\x01\xbb\x00\x00\x00\x07\x00host.example\x00", config.Endpoint{Host: "host.example", Port: 443}, "\x00\x5a\x00\x00\x00\x00\x00\x00"},
		{"5 with IPv4", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x16", config.Endpoint{Host: "127.0.0.1", Port: 22}, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
		{"5 with a name", "\x05\x02\x02\x00\x05\x01\x00\x03\x03abc\x00\x16", config.Endpoint{Host: "abc", Port: 22}, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
		{"5 with IPv6", "\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x16", config.Endpoint{Host: "::1", Port: 22}, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := &socksClient{Reader: strings.NewReader(test.request + "rest")}
			target, answer, err := readSocks(client)
			require.NoError(t, err)
			require.Equal(t, test.target, target)
			require.NoError(t, answer(true))
			require.Equal(t, test.granted, client.answers.String())
			rest, _ := io.ReadAll(client)
			require.Equal(t, "rest", string(rest), "nothing of the stream is eaten")
		})
	}
}

func TestReadSocksRefuses(t *testing.T) {
	for _, test := range []struct{ name, request, answers string }{
		{"nothing", "", ""},
		{"HTTP", "GET / HTTP/1.0\r\n\r\n", ""},
		{"4 BIND", "\x04\x02\x00\x50\x01\x02\x03\x04\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		{"4A without a name", "\x04\x01\x00\x50\x00\x00\x00\x01\x00\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		{"4 with an endless user", "\x04\x01\x00\x50\x01\x02\x03\x04" + strings.Repeat("u", 300), ""},
		{"5 with a password only", "\x05\x01\x02", "\x05\xff"},
		{"5 without methods", "\x05\x00", "\x05\xff"},
		{"5 BIND", "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x16", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		{"5 with an odd address", "\x05\x01\x00\x05\x01\x00\x09", "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00"},
		{"5 with an empty name", "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x16", "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00"},
		{"5 cut off", "\x05\x01\x00\x05\x01\x00\x01\x7f", "\x05\x00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := &socksClient{Reader: strings.NewReader(test.request)}
			_, _, err := readSocks(client)
			require.Error(t, err)
			require.Equal(t, test.answers, client.answers.String())
		})
	}
}

func FuzzReadSocks(f *testing.F) {
	f.Add([]byte("\x04\x01\x00\x50\x00\x00\x00\x07me\x00host\x00rest"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x03abc\x00\x16rest"))
	f.Fuzz(func(t *testing.T, request []byte) {
		in := bytes.NewReader(request)
		client := &socksClient{Reader: in}
		target, answer, err := readSocks(client)
		eaten := len(request) - in.Len()
		require.LessOrEqual(t, eaten, 1+7+2*(maxSocksString+1)+8)
		require.LessOrEqual(t, client.answers.Len(), 12)
		if err != nil {
			return
		}
		require.NotEmpty(t, target.Host)
		require.LessOrEqual(t, len(target.Host), maxSocksString)
		require.NoError(t, answer(true))
	})
}
