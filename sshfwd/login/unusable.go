package login

import (
	"bytes"
	"context"
	"encoding/pem"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// ForeignKeys returns the IdentityFiles with private keys that ssh can log in with, and a Login
// only if the ssh-agent holds them, which it does not: handles of FIDO security keys, and keys
// under a cipher that is not known here.
func ForeignKeys(ctx context.Context, c *config.Config) []string {
	if !c.PubkeyAuthentication {
		return nil
	}
	var foreign []string
	publics := map[string]ssh.PublicKey{}
	for _, path := range c.IdentityFiles {
		if public, is := foreignKey(ctx, path); is {
			foreign, publics[path] = append(foreign, path), public
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	held := agentKeys(ctx, c)
	return slices.DeleteFunc(foreign, func(path string) bool {
		return publics[path] != nil && slices.ContainsFunc(held, func(key ssh.PublicKey) bool {
			return hostkey.Same(key, publics[path])
		})
	})
}

// foreignKey reports whether a file has a private key that cannot be used here, and returns its
// public half, nil if that is not known.
func foreignKey(ctx context.Context, path string) (ssh.PublicKey, bool) {
	data, err := readPrivateFile(path)
	if err != nil {
		return nil, false
	}
	block, _ := pem.Decode(data)
	f := &keyFile{path: path}
	if block == nil || f.parse(data) == nil {
		return nil, false
	}
	if public, _ := readPublicKey(ctx, path+".pub", path); public != nil {
		return public, true
	}
	return publicOf(block), true
}

// publicOf reads the public key that stands in the clear in OpenSSH's format (PROTOCOL.key), nil
// if there is none.
func publicOf(block *pem.Block) ssh.PublicKey {
	var head struct {
		Cipher, KDF, KDFOptions string
		Keys                    uint32
		Public                  []byte
		Rest                    []byte `ssh:"rest"`
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	if !ok || ssh.Unmarshal(body, &head) != nil {
		return nil
	}
	public, err := ssh.ParsePublicKey(head.Public)
	if err != nil {
		return nil
	}
	return public
}

// agentKeys lists the keys of the ssh-agent, none if it does not tell.
func agentKeys(ctx context.Context, c *config.Config) (keys []ssh.PublicKey) {
	conn, err := openAgent(ctx, c)
	if err != nil || conn == nil {
		return nil
	}
	defer conn.close()
	_ = conn.conn.SetDeadline(time.Now().Add(AgentTimeout))
	listed, err := conn.List()
	if err != nil {
		return nil
	}
	for _, key := range listed {
		if public, err := ssh.ParsePublicKey(key.Blob); err == nil {
			keys = append(keys, public)
		}
	}
	return keys
}
