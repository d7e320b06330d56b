package fakesshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/testkit/env"
)

// A Token is an ssh-agent with one ed25519 key on an imaginary token: a FIDO key or, if Comment
// begins with cardno:, the key of a card behind gpg-agent. The fields may be set until
// ServeToken; Behave changes what it does later.
type Token struct {
	FIDO    bool
	Comment string
	Does    TokenDoes

	// Public is the key as a line of authorized_keys, Socket the agent's socket, and
	// Fingerprint the key's. ServeToken sets them.
	Public      string
	Socket      string
	Fingerprint string

	private ed25519.PrivateKey
	public  ssh.PublicKey
	mu      sync.Mutex
	asked   int
}

// TokenDoes is how a token behaves.
type TokenDoes struct {
	Takes     time.Duration // to sign
	Refuses   bool          // as if nobody had touched it in time
	Untouched bool          // a FIDO key that needs no touch, and says so
}

// tokenApplication is the application for which ssh-keygen makes FIDO keys.
const tokenApplication = "ssh:"

// ServeToken makes a key for the token and serves its agent until the test ends.
func ServeToken(t testing.TB, token *Token) *Token {
	t.Helper()
	if err := token.makeKey(); err != nil {
		t.Fatal(err)
	}
	token.Socket = filepath.Join(env.ShortDir(t), "agent")
	listener, err := net.Listen("unix", token.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_ = agent.ServeAgent(tokenAgent{token: token}, conn)
			})
		}
	})
	return token
}

func (k *Token) makeKey() error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	k.private = private
	k.public, err = ssh.NewPublicKey(private.Public())
	options := ""
	if err == nil && k.FIDO {
		options = "no-touch-required "
		k.public, err = ssh.ParsePublicKey(ssh.Marshal(struct {
			Type        string
			Key         []byte
			Application string
		}{ssh.KeyAlgoSKED25519, private.Public().(ed25519.PublicKey), tokenApplication}))
	}
	if err != nil {
		return err
	}
	k.Fingerprint = ssh.FingerprintSHA256(k.public)
	k.Public = fmt.Sprintf("%s%s %s\n", options, k.public.Type(), base64.StdEncoding.EncodeToString(k.public.Marshal()))
	return nil
}

// AuthorizedKeys writes Public into a new file that a real sshd may read.
func (k *Token) AuthorizedKeys(t testing.TB) string {
	t.Helper()
	dir := env.ShortDir(t)
	path := filepath.Join(dir, "authorized_keys")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, []byte(k.Public), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Behave changes what the token does.
func (k *Token) Behave(does TokenDoes) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Does = does
}

// Asked returns how often it was asked to sign.
func (k *Token) Asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

func (k *Token) sign(data []byte) (*ssh.Signature, error) {
	k.mu.Lock()
	does := k.Does
	k.asked++
	k.mu.Unlock()
	time.Sleep(does.Takes)
	switch {
	case does.Refuses:
		return nil, errors.New("not touched")
	case !k.FIDO:
		return &ssh.Signature{Format: ssh.KeyAlgoED25519, Blob: ed25519.Sign(k.private, data)}, nil
	}
	// PROTOCOL.u2f in OpenSSH: flags and a counter.
	rest := []byte{1, 0, 0, 0, 7}
	if does.Untouched {
		rest[0] = 0
	}
	application, message := sha256.Sum256([]byte(tokenApplication)), sha256.Sum256(data)
	signed := append(append(application[:], rest...), message[:]...)
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, signed), Rest: rest}, nil
}

// tokenAgent implements the agent protocol for a token; methods that it lacks are not called.
type tokenAgent struct {
	agent.ExtendedAgent
	token *Token
}

func (a tokenAgent) List() ([]*agent.Key, error) {
	key := a.token.public
	return []*agent.Key{{Format: key.Type(), Blob: key.Marshal(), Comment: a.token.Comment}}, nil
}

func (a tokenAgent) Sign(_ ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return a.token.sign(data)
}

func (a tokenAgent) SignWithFlags(_ ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	return a.token.sign(data)
}

func (a tokenAgent) Extension(string, []byte) ([]byte, error) {
	return nil, agent.ErrExtensionUnsupported
}
